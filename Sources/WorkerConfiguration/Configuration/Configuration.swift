package import AccountAPI
package import Clocks
package import GoogleOAuth
package import HTTPClient
package import Observability

/// The configuration: every setting, checked and typed, from flags, environment, file and defaults.
package struct Configuration: Equatable, Sendable {
    /// The destination of the metrics log.
    package enum MetricsLog: Equatable, Sendable {
        case standardOutput
        case file(String)
    }

    /// The configuration file, if one was named.
    package let configurationFile: String?
    package let database: DatabaseLocation
    package let keyFile: String
    /// The configured client ids in order, without duplicates; may be empty, because a grant can carry its own.
    package let clientIDs: [String]
    package let clientSecretFile: String?
    package let endpoints: Endpoints
    package let caFile: String?
    package let metricsLog: MetricsLog
    package let logLevel: LogLevel
    /// The limit of requests per second for one client id.
    package let maxRate: Double
    package let summaryInterval: Duration
    package let stopDeadline: Duration
    package let runsOnce: Bool
    /// The place where the app's routes are served, if they are.
    package let publicListener: ListenerLocation?
    /// The place where tokens are vended, if they are.
    package let internalListener: ListenerLocation?
    package let socketMode: UInt32
    /// The addresses or networks of trusted proxies.
    package let trustedProxies: [String]
    /// The number of times per minute that one address may fail to sign in or to connect.
    package let googleCallsPerMinute: Int
    package let emailLinking: EmailLinking
    package let jwtSecretFile: String?
    /// The time in which any refresh token of a session is answered with the current tokens.
    package let sessionGrace: Duration
    /// The end of the time in which refresh tokens of the former backend begin a session.
    package let acceptFormerRefreshTokensUntil: Timestamp?
    package let servicesFile: String?
    /// The certificate of the internal listener, if it serves TLS.
    package let internalCertificateFile: String?
    package let internalKeyFile: String?
    /// `true` if /metrics is served over TLS.
    package let servesInternalMetrics: Bool
    package let securityEventsEndpoint: Endpoint
    package let noticeURL: Endpoint?
    package let noticeSecretFile: String?
}
