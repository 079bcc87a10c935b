import Base
import Crypto
import GoogleOAuth
import HTTPClient

extension Command {
    /// `google-events register`: has Google post all events to a URL.
    static let registerEvents = Command(
        words: ["google-events", "register"],
        summary: "have Google post all events to a URL",
        discussion: """
            Requests every kind of event that the worker knows, and enables the stream. The URL must be https and on \
            one of the authorized domains of the project's consent screen. The command can be repeated.
            """,
        options: [
            OptionSpecification("url", .endpoint, "the URL for Google's events; needed", need: "")
        ] + SecurityEventStream.options + [.jsonObject],
        settings: [.config, .caFile, .logLevel],
        examples: [
            """
            refresh-worker google-events register --service-account-file risc.json \
            --url https://api.example.com/v1/google/security-events
            """: "once, and when the URL changes"
        ],
        exitCodes: SecurityEventStream.exitCodes
    ) { arguments, context, output in
        try await SecurityEventStream.with(arguments, by: context) { stream in
            let target = try SecurityEventStream.endpoint(arguments.needed("url"))
            try await stream.register(url: target)
            output.answer("registered: Google posts security events to \(target)") { line in
                line.field("url", "\(target)")
                line.strings("events", SecurityEvent.EventType.all)
            }
        }
    }

    /// `google-events status`: shows the stream of events.
    static let showEvents = Command(
        words: ["google-events", "status"],
        summary: "show where Google posts events, which ones, and whether the stream is enabled",
        discussion: "While a stream is disabled, events are neither sent nor kept; register enables it.",
        options: SecurityEventStream.options + [.jsonObject],
        settings: [.config, .caFile, .logLevel],
        examples: [
            "refresh-worker google-events status --service-account-file risc.json": "is the stream enabled?"
        ],
        exitCodes: SecurityEventStream.exitCodes
    ) { arguments, context, output in
        try await SecurityEventStream.with(arguments, by: context) { stream in
            let state = try await stream.state()
            output.answer(state.text, json: state.write)
        }
    }

    private static let defaultState = "refresh-worker"

    /// `google-events verify`: lets Google post a test event.
    static let verifyEvents = Command(
        words: ["google-events", "verify"],
        summary: "let Google post a test event, to check the delivery",
        discussion: """
            The event arrives soon after; the metrics log then has a line security_event of kind verification.
            """,
        options: [
            OptionSpecification(
                "state",
                .text(as: "TEXT", maximumLength: 128, signs: "-_.:"),
                "a text that the event carries. Default: \(defaultState)",
                standard: defaultState
            )
        ] + SecurityEventStream.options + [.jsonObject],
        settings: [.config, .caFile, .logLevel],
        examples: [
            "refresh-worker google-events verify --service-account-file risc.json": "do events arrive?"
        ],
        exitCodes: SecurityEventStream.exitCodes
    ) { arguments, context, output in
        try await SecurityEventStream.with(arguments, by: context) { stream in
            let state = arguments.needed("state")
            try await stream.verify(state: state)
            output.answer("requested: Google posts a verification event soon, which the metrics log then shows") {
                $0.field("state", state)
            }
        }
    }
}

extension SecurityEventStream.StreamState {
    private var missing: [String] { SecurityEvent.EventType.all.filter { !events.contains($0) } }

    fileprivate var text: String {
        let known = Set(SecurityEvent.EventType.all)
        let lines =
            [
                "status  \(status.map { DisplayedText($0).description } ?? "unknown")",
                "url     \(url.map { DisplayedText($0).description } ?? "none")",
                "events  \(events.count { known.contains($0) }) of \(known.count)",
            ] + missing.map { "missing \($0)" }
            + (missing.isEmpty ? [] : ["to ask for those as well, run: \(SecurityEventStream.registration)"])
        return lines.joined(separator: "\n")
    }

    fileprivate func write(to line: inout JSONLine) {
        line.fieldOrNull("status", status)
        line.fieldOrNull("url", url)
        line.strings("events", events)
        line.strings("missing", missing)
    }
}

/// The flags and exit codes of the commands about the stream.
extension SecurityEventStream {
    fileprivate static let options = [
        OptionSpecification(
            "service-account-file",
            .file,
            "the JSON key file of the service account, mode 0600; - is standard input; needed",
            need: ""
        ),
        OptionSpecification(
            "risc-endpoint",
            .endpoint,
            "the address at which streams are managed. Default: \(defaultEndpoint)"
        ),
    ]

    fileprivate static let exitCodes: [ExitCode] = [
        .success, .usage, .badData, .inputUnreadable, .peerUnreachable, .internalFailure, .configuration,
    ]
}
