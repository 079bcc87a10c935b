/// One setting of the worker: the only place that defines its names, its default, its explanation, and the effect of a
/// reload on it.
///
///     Setting(.stopDeadline, placeholder: "SECONDS", default: "20", change: .restart(\.stopDeadline)) {
///         "The time in which a stopping worker can finish requests in flight; 1 to 3600."
///     }
///
/// A setting is a flag (`--max-rate`), an environment variable (`REFRESH_WORKER_MAX_RATE`) and a key of the
/// configuration file (spelled like the variable). Flags override the environment, which overrides the file.
struct Setting: Sendable {
    /// The name of the flag, without its dashes.
    enum Name: String, CaseIterable, Sendable {
        case config
        case database
        case keyFile = "key-file"
        case keyCommand = "key-command"
        case keyWrapCommand = "key-wrap-command"
        case clientID = "client-id"
        case clientSecretFile = "client-secret-file"
        case serverClientID = "server-client-id"
        case bindTokens = "bind-tokens"
        case tokenEndpoint = "token-endpoint"
        case userinfoEndpoint = "userinfo-endpoint"
        case tokeninfoEndpoint = "tokeninfo-endpoint"
        case revocationEndpoint = "revocation-endpoint"
        case caFile = "ca-file"
        case metricsLog = "metrics-log"
        case logSample = "log-sample"
        case logLevel = "log-level"
        case maxRate = "max-rate"
        case summaryInterval = "summary-interval"
        case otlpEndpoint = "otlp-endpoint"
        case stopDeadline = "stop-deadline"
        case forgetEndedAfter = "forget-ended-after"
        case runOnce = "run-once"
        case listen
        case listenInternal = "listen-internal"
        case internalCertificate = "internal-certificate"
        case internalKey = "internal-key"
        case internalMetrics = "internal-metrics"
        case socketMode = "socket-mode"
        case trustedProxy = "trusted-proxy"
        case googleCallsPerMinute = "google-calls-per-minute"
        case connectionsPerUser = "connections-per-user"
        case linkByEmail = "link-by-email"
        case jwtSecretFile = "jwt-secret-file"
        case appKeys = "app-keys"
        case appIssuer = "app-issuer"
        case appAudience = "app-audience"
        case appUserClaim = "app-user-claim"
        case sessionGrace = "session-grace"
        case acceptFormerRefreshTokensUntil = "accept-former-refresh-tokens-until"
        case servicesFile = "services-file"
        case securityEventsEndpoint = "security-events-endpoint"
        case googleKeysEndpoint = "google-keys-endpoint"
        case noticeURL = "notice-url"
        case noticeSecretFile = "notice-secret-file"
        case expiryNotice = "expiry-notice"
    }

    let name: Name
    /// The placeholder for the value in the help, or `nil` for a switch, which does not take a value.
    let placeholder: String?
    /// The default, as it would be written in the configuration file.
    let defaultValue: String?
    /// `true` if the flag can be given several times. The variable and the key then take a comma-separated list.
    let isRepeatable: Bool
    /// The way in which a changed value reaches a running worker.
    let change: Change
    /// The effect of the setting, for the help.
    let summary: String

    init(
        _ name: Name,
        placeholder: String? = nil,
        default: String? = nil,
        repeatable: Bool = false,
        change: Change,
        summary: () -> String
    ) {
        self.name = name
        self.placeholder = placeholder
        self.defaultValue = `default`
        self.isRepeatable = repeatable
        self.change = change
        self.summary = summary()
    }

    var flag: String { "--" + name.rawValue }

    /// The flag with the placeholder of its value, as the help shows it.
    var usage: String { placeholder.map { "\(flag) \($0)" } ?? flag }

    /// The default, if it is worth showing: a switch is off unless it is given.
    var shownDefault: String? { placeholder == nil ? nil : defaultValue }
}

extension Setting.Name {
    /// The name as an environment variable and as a key of the configuration file.
    var environmentName: String {
        Setting.environmentPrefix + rawValue.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
    }
}

extension Setting {
    /// The prefix of the worker's environment variables and file keys.
    static let environmentPrefix = "REFRESH_WORKER_"

    /// The second name of the client id, shared with other programs of the backend.
    static let sharedClientIDName = "GOOGLE_CLIENT_ID"

    /// The variable with the secret of the app's own tokens, shared with the former backend.
    static let jwtSecretName = "JWT_SECRET"

    /// The variable with the folder of systemd's credentials (`LoadCredential`)
    /// (https://www.freedesktop.org/software/systemd/man/252/systemd.exec.html#Credentials).
    static let credentialsDirectoryName = "CREDENTIALS_DIRECTORY"

    /// Every setting, in the order of the help.
    static let all: [Setting] = refreshing + listening

    /// Returns the setting of a name.
    ///
    /// A test checks that there is one for each.
    static func named(_ name: Name) -> Setting? {
        all.first { $0.name == name }
    }
}
