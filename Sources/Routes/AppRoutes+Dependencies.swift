package import Base
package import GoogleOAuth
package import Scheduler
package import Storage

extension AppRoutes {
    /// What the app's routes need.
    package struct Dependencies: Sendable {
        /// For the look-up of a token's owner at Google.
        package static let defaultGoogleDeadline: Duration = .seconds(10)
        package static let defaultConnectionsPerUser = 20

        let store: any Store
        let engine: RefreshEngine
        let google: any Google
        let vault: TokenVault
        let tokens: AppTokens
        /// The keys of Google's ID tokens.
        let googleKeys: KeySetCache
        /// Returns the client ids that are configured at this moment, which a reload can change.
        private let currentClientIDs: @Sendable () -> [String]
        /// The exchange of the app's codes, or `nil` in tests that need none.
        let exchanges: CodeExchanges?
        /// How many Google accounts a user can have connected.
        let connectionsPerUser: Int
        let budgets: RequestBudgets
        /// The stored users that a Google account can be linked to by its e-mail address.
        let emailLinking: EmailLinking
        /// How long after a refresh any token of the family gets the current tokens.
        let sessionGrace: Duration
        /// The end of the time in which refresh tokens of the former backend begin a session, or `nil` if they never
        /// do.
        let acceptFormerTokensUntil: Timestamp?
        let time: any TimeSource
        let random: any RandomSource
        let log: EngineLog
        let googleDeadline: Duration

        package init(
            store: any Store,
            engine: RefreshEngine,
            google: any Google,
            vault: TokenVault,
            tokens: AppTokens,
            googleKeys: KeySetCache,
            clientIDs: @escaping @Sendable () -> [String],
            exchanges: CodeExchanges? = nil,
            connectionsPerUser: Int = Dependencies.defaultConnectionsPerUser,
            budgets: RequestBudgets,
            emailLinking: EmailLinking = .verified,
            sessionGrace: Duration = Session.defaultGrace,
            acceptFormerTokensUntil: Timestamp? = nil,
            time: any TimeSource,
            random: any RandomSource,
            log: EngineLog,
            googleDeadline: Duration = Dependencies.defaultGoogleDeadline
        ) {
            self.store = store
            self.engine = engine
            self.google = google
            self.vault = vault
            self.tokens = tokens
            self.googleKeys = googleKeys
            currentClientIDs = clientIDs
            self.exchanges = exchanges
            self.connectionsPerUser = connectionsPerUser
            self.budgets = budgets
            self.emailLinking = emailLinking
            self.sessionGrace = sessionGrace
            self.acceptFormerTokensUntil = acceptFormerTokensUntil
            self.time = time
            self.random = random
            self.log = log
            self.googleDeadline = googleDeadline
        }

        /// The configured client ids: tokens that were issued to others are refused.
        var clientIDs: [String] { currentClientIDs() }
    }
}
