import GoogleOAuth
import Scheduler

/// One setting of the worker: the only place that defines its names, its default, its explanation, and the effect of a
/// reload on it.
///
/// A setting is a flag (`--max-rate`), an environment variable (`REFRESH_WORKER_MAX_RATE`) and a key of the
/// configuration file (spelled like the variable). Flags override the environment, which overrides the file.
struct Setting: Sendable {
    /// The name of the flag, without its dashes.
    enum Name: String, CaseIterable, Sendable {
        case config
        case database
        case keyFile = "key-file"
        case clientID = "client-id"
        case clientSecretFile = "client-secret-file"
        case serverClientID = "server-client-id"
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
    /// `true` if the flag can be given several times.
    ///
    /// The variable and the key then take a comma-separated list.
    let isRepeatable: Bool
    /// The way in which a changed value reaches a running worker.
    let change: Change
    /// The effect of the setting, for the help.
    let summary: String

    init(
        _ name: Name,
        _ placeholder: String?,
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

    /// The settings for keeping grants alive.
    private static let refreshing: [Setting] = [
        Setting(.config, "FILE", change: .restart(\.configurationFile)) {
            """
            Configuration file of KEY=value lines in the syntax of systemd's EnvironmentFile. A reload reads it again. \
            Without it: ~/.config/refresh-worker/refresh-worker.conf of a user other than root, otherwise \
            /etc/refresh-worker/refresh-worker.conf, if it exists.
            """
        },
        Setting(.database, "PLACE", default: "/var/lib/refresh-worker/grants.sqlite", change: .restart(\.database)) {
            """
            The database: a SQLite file, created if it does not exist; or postgres://USER@HOST/NAME for many workers \
            on one PostgreSQL; or url-file:FILE for a file of mode 0600 with such an address and its password. If \
            systemd passes a credential named database-url, that is the default instead.
            """
        },
        Setting(.keyFile, "FILE", default: "/etc/refresh-worker/keys", change: .file(\.keyFile)) {
            """
            The key ring that seals stored tokens; mode 0600. A running worker reads it again every five seconds. \
            If systemd passes a credential named key-ring, that is the default instead.
            """
        },
        Setting(.clientID, "ID", repeatable: true, change: .reload(.clients, \.clientIDs)) {
            """
            OAuth client id of the app that obtained the grants. Can repeat; in the environment and the file a list \
            with commas. Also GOOGLE_CLIENT_ID, or a systemd credential named client-id with one on each line. A \
            change of the environment or of the credential takes a restart.
            """
        },
        Setting(.clientSecretFile, "FILE", change: .reload(.clients, \.clientSecretFile)) {
            """
            File with the secrets of confidential clients; Google's iOS clients do not have one. Each line \
            is a client id, a blank and its secret; with exactly one client id the secret alone is enough. Lines that \
            begin with # are comments. A secret is sent only with its own client id. A Google client id can stay here after \
            it is removed from --client-id: the grants stored for it are still refreshed.
            """
        },
        Setting(.serverClientID, "ID", change: .reload(.clients, \.serverClientID)) {
            """
            OAuth client id of your server (type "Web application"), which exchanges the serverAuthCode of Google's SDK for \
            a grant. Its secret must be in --client-secret-file. Must be of the same Google Cloud project as --client-id.
            """
        },
        Setting(
            .tokenEndpoint,
            "URL",
            default: "https://oauth2.googleapis.com/token",
            change: .restart(\.endpoints.token)
        ) {
            "The endpoint that refreshes tokens. Must be https, except on this machine."
        },
        Setting(
            .userinfoEndpoint,
            "URL",
            default: "https://openidconnect.googleapis.com/v1/userinfo",
            change: .restart(\.endpoints.userinfo)
        ) {
            "The endpoint that names the owner of an access token."
        },
        Setting(
            .tokeninfoEndpoint,
            "URL",
            default: "https://oauth2.googleapis.com/tokeninfo",
            change: .restart(\.endpoints.tokeninfo)
        ) {
            "The endpoint that names the client, scope and lifetime of an access token."
        },
        Setting(
            .revocationEndpoint,
            "URL",
            default: "https://oauth2.googleapis.com/revoke",
            change: .restart(\.endpoints.revocation)
        ) {
            "The endpoint that revokes a grant which the user ended."
        },
        Setting(.caFile, "FILE", change: .restart(\.caFile)) {
            "Certificates (PEM) to trust instead of the system's, for a proxy or a server of your own."
        },
        Setting(.metricsLog, "FILE", default: "-", change: .restart(\.metricsLog)) {
            "The destination of the metrics log, one JSON object per line; - is standard output. A reload reopens it."
        },
        Setting(.logSample, "EVENT=N", default: "\(EngineLog.sampledEvent)=1", change: .reload(.logs, \.logSample)) {
            """
            The share of \(EngineLog.sampledEvent) in the metrics log: the lines of refreshes that succeeded at the first \
            try and changed nothing else. 100 writes one of a hundred, 0 none, at most 1000000. No other event can be \
            left out. Summaries and metrics count all.
            """
        },
        Setting(.logLevel, "LEVEL", default: "notice", change: .reload(.logs, \.logLevel)) {
            "The least severe level that goes to standard error: error, warning, notice, info or debug."
        },
        Setting(.maxRate, "N", default: "200", change: .reload(.rate, \.maxRate)) {
            """
            The maximum number of requests per second to the token endpoint for one client id, by all workers on the database \
            together: each takes an equal part. More than 0, at most 100000.
            """
        },
        Setting(.summaryInterval, "SECONDS", default: "60", change: .restart(\.summaryInterval)) {
            "The interval of summaries in the metrics log; 1 to 86400."
        },
        Setting(.stopDeadline, "SECONDS", default: "20", change: .restart(\.stopDeadline)) {
            "The time in which a stopping worker can finish requests in flight; 1 to 3600."
        },
        Setting(.forgetEndedAfter, "DAYS", change: .restart(\.forgetEndedAfter)) {
            """
            The days (1 to 3650) after which an ended grant loses its tokens, scopes and account, and its user the \
            e-mail address, name and picture, unless the user has signed in since. The user's id here and at Google and \
            the history stay. 'users forget' shows whom. Without it ended grants are kept.
            """
        },
        Setting(.runOnce, nil, default: "no", change: .restart(\.runsOnce)) {
            "Try each due grant once, print a one-line JSON summary and exit: for cron. Five minutes at most."
        },
    ]

    /// Returns the setting of a name.
    ///
    /// A test checks that there is one for each.
    static func named(_ name: Name) -> Setting? {
        all.first { $0.name == name }
    }
}
