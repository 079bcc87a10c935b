import AccountAPI
import Clocks
import GoogleOAuth
import HTTPClient
import Observability

/// The configuration: every setting, checked and typed, from flags, environment, file and defaults.
struct Configuration: Equatable, Sendable {
    /// The destination of the metrics log.
    enum MetricsLog: Equatable, Sendable {
        case standardOutput
        case file(String)
    }

    /// The configuration file, if one was named.
    let configurationFile: String?
    let database: DatabaseLocation
    let keyFile: String
    /// The configured client ids in order, without duplicates; may be empty, because a grant can carry its own.
    let clientIDs: [String]
    let clientSecretFile: String?
    let endpoints: Endpoints
    let caFile: String?
    let metricsLog: MetricsLog
    let logLevel: LogLevel
    /// The limit of requests per second for one client id.
    let maxRate: Double
    let summaryInterval: Duration
    let stopDeadline: Duration
    let runsOnce: Bool
    /// The place where the app's routes are served, if they are.
    let publicListener: ListenerLocation?
    /// The place where tokens are vended, if they are.
    let internalListener: ListenerLocation?
    let socketMode: UInt32
    /// The addresses or networks of trusted proxies.
    let trustedProxies: [String]
    /// The number of times per minute that one address may fail to sign in or to connect.
    let googleCallsPerMinute: Int
    let emailLinking: EmailLinking
    let jwtSecretFile: String?
    /// The time in which any refresh token of a session is answered with the current tokens.
    let sessionGrace: Duration
    /// The end of the time in which refresh tokens of the former backend begin a session.
    let acceptFormerRefreshTokensUntil: Timestamp?
    let servicesFile: String?
    /// The certificate of the internal listener, if it serves TLS.
    let internalCertificateFile: String?
    let internalKeyFile: String?
    /// `true` if /metrics is served over TLS.
    let servesInternalMetrics: Bool
    let securityEventsEndpoint: Endpoint
    let noticeURL: Endpoint?
    let noticeSecretFile: String?
}
