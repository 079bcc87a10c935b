import AccountAPI
import Clocks
import GoogleOAuth
import HTTPClient
import Observability

/// What the worker was told: every setting, checked and typed, from flags, environment, file and defaults.
struct Configuration: Equatable, Sendable {
    /// Where the metrics log is written.
    enum MetricsLog: Equatable, Sendable {
        case standardOutput
        case file(String)
    }

    /// The file that was read, if one was named.
    let configurationFile: String?
    let database: DatabasePlace
    let keyFile: String
    /// The configured client ids in order, each once; may be empty, because a grant can carry its own.
    let clientIDs: [String]
    let clientSecretFile: String?
    let endpoints: Endpoints
    let certificateAuthorityFile: String?
    let metricsLog: MetricsLog
    let logLevel: LogLevel
    /// Requests a second for one client id.
    let maximumRate: Double
    let summaryInterval: Duration
    let stopDeadline: Duration
    let runsOnce: Bool
    /// Where the app's routes are served, if they are.
    let publicListener: ListeningPlace?
    /// Where tokens are vended, if they are.
    let internalListener: ListeningPlace?
    let socketMode: UInt32
    /// Proxies, or networks of them, that are believed.
    let trustedProxies: [String]
    /// How often a minute one address may fail to sign in or to connect.
    let googleCallsPerMinute: Int
    let emailLinking: EmailLinking
    let jwtSecretFile: String?
    /// The time in which any refresh token of a session is answered with the current tokens.
    let sessionGrace: Duration
    /// The end of the time in which refresh tokens of the former backend begin a session.
    let acceptFormerRefreshTokensUntil: Timestamp?
    let servicesFile: String?
    /// What the internal listener serves TLS with, if it does.
    let internalCertificateFile: String?
    let internalKeyFile: String?
    /// `true` if /metrics is served over TLS.
    let servesInternalMetrics: Bool
    let securityEventsEndpoint: Endpoint
    let noticeURL: Endpoint?
    let noticeSecretFile: String?
}
