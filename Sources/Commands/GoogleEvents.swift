import Base
import GoogleOAuth
import HTTPClient
import Worker

/// `google-events register`: has Google post all events to a URL.
struct RegisterEvents: Command {
    static let specification = CommandSpecification(
        words: ["google-events", "register"],
        summary: "have Google post all events to a URL",
        discussion: """
            Requests every kind of event that the worker knows, and enables the stream. The URL must be https and on \
            one of the authorized domains of the project's consent screen. The command can be repeated.
            """,
        options: [
            OptionSpecification("url", .endpoint, "the URL for Google's events; needed")
        ] + StreamAccess.options + [.jsonObject],
        settings: [.config, .caFile, .logLevel],
        examples: [
            Example(
                """
                refresh-worker google-events register --service-account-file risc.json \
                --url https://api.example.com/v1/google/security-events
                """,
                "once, and when the URL changes"
            )
        ],
        exitCodes: StreamAccess.exitCodes
    )

    private let access: StreamAccess
    private let url: String

    init(_ arguments: CommandArguments) throws(UsageError) {
        url = try arguments.needed("url", "service-account-file")[0]
        access = try StreamAccess(arguments)
    }

    func run(in context: CommandContext) async throws -> ExitCode {
        try await access.use(in: context) { stream in
            let target = try StreamAccess.endpoint(url)
            try await stream.register(url: target)
            context.answer("registered: Google posts security events to \(target)") { line in
                line.field("url", "\(target)")
                line.array("events") { array in SecurityEvent.EventType.all.forEach { array.element($0) } }
            }
        }
    }
}

/// `google-events status`: shows the stream of events.
struct ShowEvents: Command {
    static let specification = CommandSpecification(
        words: ["google-events", "status"],
        summary: "show where Google posts events, which ones, and whether the stream is enabled",
        discussion: "While a stream is disabled, events are neither sent nor kept; register enables it.",
        options: StreamAccess.options + [.jsonObject],
        settings: [.config, .caFile, .logLevel],
        examples: [
            Example("refresh-worker google-events status --service-account-file risc.json", "is the stream enabled?")
        ],
        exitCodes: StreamAccess.exitCodes
    )

    private let access: StreamAccess

    init(_ arguments: CommandArguments) throws(UsageError) { access = try StreamAccess(arguments) }

    func run(in context: CommandContext) async throws -> ExitCode {
        try await access.use(in: context) { stream in
            let state = try await stream.state()
            context.answer(Self.text(of: state)) { Self.write(state, to: &$0) }
        }
    }

    private static func text(of state: SecurityEventStream.StreamState) -> String {
        let known = Set(SecurityEvent.EventType.all)
        let missing = SecurityEvent.EventType.all.filter { !state.events.contains($0) }
        var lines = [
            "status  \(state.status.map { DisplayedText($0).description } ?? "unknown")",
            "url     \(state.url.map { DisplayedText($0).description } ?? "none")",
            "events  \(state.events.count { known.contains($0) }) of \(known.count)",
        ]
        for type in missing { lines.append("missing \(type)") }
        if !missing.isEmpty { lines.append("run google-events register to ask for those as well") }
        return lines.joined(separator: "\n")
    }

    private static func write(_ state: SecurityEventStream.StreamState, to line: inout JSONLine) {
        line.fieldOrNull("status", state.status)
        line.fieldOrNull("url", state.url)
        line.array("events") { array in state.events.forEach { array.element($0) } }
        line.array("missing") { array in
            for type in SecurityEvent.EventType.all where !state.events.contains(type) { array.element(type) }
        }
    }
}

/// `google-events verify`: lets Google post a test event.
struct VerifyEvents: Command {
    private static let defaultState = "refresh-worker"

    static let specification = CommandSpecification(
        words: ["google-events", "verify"],
        summary: "let Google post a test event, to check the delivery",
        discussion: """
            The event arrives soon after; the metrics log then has a line security_event of kind verification.
            """,
        options: [
            OptionSpecification(
                "state",
                .text(as: "TEXT", AllowedText(lengthLimit: 128, signs: "-_.:")),
                "a text that the event carries. Default: \(defaultState)"
            )
        ] + StreamAccess.options + [.jsonObject],
        settings: [.config, .caFile, .logLevel],
        examples: [
            Example("refresh-worker google-events verify --service-account-file risc.json", "do events arrive?")
        ],
        exitCodes: StreamAccess.exitCodes
    )

    private let access: StreamAccess
    private let state: String

    init(_ arguments: CommandArguments) throws(UsageError) {
        access = try StreamAccess(arguments)
        state = arguments["state"] ?? Self.defaultState
    }

    func run(in context: CommandContext) async throws -> ExitCode {
        try await access.use(in: context) { stream in
            try await stream.verify(state: state)
            context.answer("requested: Google posts a verification event soon, which the metrics log then shows") {
                $0.field("state", state)
            }
        }
    }
}

/// The stream by which Google reports revoked tokens and accounts in danger, as the command line names it.
private struct StreamAccess {
    static let options = [
        OptionSpecification(
            "service-account-file",
            .file,
            "the JSON key file of the service account, mode 0600; needed"
        ),
        OptionSpecification(
            "risc-endpoint",
            .endpoint,
            "the address at which streams are managed. Default: \(SecurityEventStream.defaultEndpoint)"
        ),
    ]

    static let exitCodes: [ExitCode] = [
        .success, .usage, .badData, .inputUnreadable, .googleUnreachable, .internalFailure, .configuration,
    ]

    private let serviceAccountFile: String
    /// The endpoint to use instead of Google's.
    private let endpoint: String?

    init(_ arguments: CommandArguments) throws(UsageError) {
        serviceAccountFile = try arguments.needed("service-account-file")[0]
        endpoint = arguments["risc-endpoint"]
    }

    func use(in context: CommandContext, _ body: (SecurityEventStream) async throws -> Void) async throws -> ExitCode {
        let account = try Self.serviceAccount(in: serviceAccountFile)
        let endpoint = try Self.endpoint(endpoint ?? SecurityEventStream.defaultEndpoint)
        let http = try context.openHTTP()
        defer { http.shutDown() }
        do {
            try await body(SecurityEventStream(http: http, endpoint: endpoint, account: account, time: context.time))
        } catch let failure as SecurityEventStreamFailure {
            throw CommandFailure(Self.exitCode(of: failure), failure.description)
        }
        return .success
    }

    private static func serviceAccount(in path: String) throws -> ServiceAccount {
        let file = try CommandContext.readPrivate(path, for: "--service-account-file", unreadable: .inputUnreadable)
        do throws(ServiceAccountError) {
            return try ServiceAccount(keyFile: file)
        } catch {
            throw CommandFailure(.badData, "\(path) is not the key of a service account: \(error)")
        }
    }

    static func endpoint(_ text: String) throws -> Endpoint {
        do throws(EndpointError) {
            return try Endpoint(text)
        } catch {
            throw CommandFailure(.usage, error.description)
        }
    }

    private static func exitCode(of failure: SecurityEventStreamFailure) -> ExitCode {
        switch failure.reason {
        case .unreachable, .unavailable: .googleUnreachable
        case .malformed, .noStream: .badData
        case .unsigned, .unauthenticated, .forbidden: .configuration
        }
    }
}
