import GoogleOAuth

extension CommandSpecification {
    /// The commands about Google's stream of security events.
    static let googleEvents = CommandSpecification(
        words: ["google-events"],
        summary: "let Google report revoked tokens and accounts in danger immediately",
        discussion: [
            """
            Google's Cross-Account Protection posts an event to a URL when a user revokes access, changes a password \
            or loses the account. The worker receives such events at /v1/google/security-events on its public \
            listener, and acts within a second. Each Cloud project has one stream; it is managed with the key of a \
            service account with the role roles/riscconfigs.admin, in a project where the RISC API is enabled.
            """
        ],
        settings: [.config, .caFile],
        exitCodes: [.usage],
        subcommands: [register, status, verify]
    )

    private static let access = [
        OptionSpecification(
            name: "service-account-file",
            kind: .file,
            summary: "the JSON key file of the service account, mode 0600; needed"
        ),
        OptionSpecification(
            name: "risc-endpoint",
            kind: .endpoint,
            summary: "the address at which streams are managed. Default: \(SecurityEventStream.defaultEndpoint)"
        ),
    ]

    private static let endings: [ExitCode] = [
        .success, .usage, .badData, .inputUnreadable, .googleUnreachable, .internalFailure, .configuration,
    ]

    private static let register = CommandSpecification(
        words: ["google-events", "register"],
        summary: "have Google post all events to a URL",
        discussion: [
            """
            Requests every kind of event that the worker knows, and enables the stream. The URL must be https and on \
            one of the authorized domains of the project's consent screen. The command can be repeated.
            """
        ],
        options: [
            OptionSpecification(name: "url", kind: .endpoint, summary: "the URL for Google's events; needed")
        ] + access + [.jsonObject],
        settings: [.config, .caFile, .logLevel],
        examples: [
            Example(
                line: """
                    refresh-worker google-events register --service-account-file risc.json \
                    --url https://api.example.com/v1/google/security-events
                    """,
                purpose: "once, and when the URL changes"
            )
        ],
        exitCodes: endings,
        problems: { missing(["url", "service-account-file"], in: $0) },
        make: { .manageGoogleEvents(order(.register(url: $0.options["url"] ?? ""), $0)) }
    )

    private static let status = CommandSpecification(
        words: ["google-events", "status"],
        summary: "show where Google posts events, which ones, and whether the stream is enabled",
        discussion: ["While a stream is disabled, events are neither sent nor kept; register enables it."],
        options: access + [.jsonObject],
        settings: [.config, .caFile, .logLevel],
        examples: [
            Example(
                line: "refresh-worker google-events status --service-account-file risc.json",
                purpose: "is the stream enabled?"
            )
        ],
        exitCodes: endings,
        problems: { missing(["service-account-file"], in: $0) },
        make: { .manageGoogleEvents(order(.status, $0)) }
    )

    private static let verify = CommandSpecification(
        words: ["google-events", "verify"],
        summary: "let Google post a test event, to check the delivery",
        discussion: [
            "The event arrives soon after; the metrics log then has a line security_event of kind verification."
        ],
        options: [
            OptionSpecification(
                name: "state",
                kind: .text(as: "TEXT", AllowedText(lengthLimit: 128, signs: "-_.:")),
                summary: "a text that the event carries. Default: \(defaultState)"
            )
        ] + access + [.jsonObject],
        settings: [.config, .caFile, .logLevel],
        examples: [
            Example(
                line: "refresh-worker google-events verify --service-account-file risc.json",
                purpose: "do events arrive?"
            )
        ],
        exitCodes: endings,
        problems: { missing(["service-account-file"], in: $0) },
        make: { .manageGoogleEvents(order(.verify(state: $0.options["state"] ?? defaultState), $0)) }
    )

    private static let defaultState = "refresh-worker"

    private static func missing(_ names: [String], in arguments: CommandArguments) -> [String] {
        names.filter { !arguments.has($0) }.map { "--\($0) is needed" }
    }

    private static func order(_ action: GoogleEventsOptions.Action, _ arguments: CommandArguments)
        -> GoogleEventsOptions
    {
        GoogleEventsOptions(
            action: action,
            serviceAccountFile: arguments.options["service-account-file"] ?? "",
            endpoint: arguments.options["risc-endpoint"],
            isJSON: arguments.has("json")
        )
    }
}

/// The arguments of `google-events`.
package struct GoogleEventsOptions: Equatable, Sendable {
    package enum Action: Equatable, Sendable {
        case register(url: String)
        case status
        case verify(state: String)
    }

    package let action: Action
    package let serviceAccountFile: String
    /// The endpoint to use instead of Google's.
    package let endpoint: String?
    package var isJSON = false
}
