package import Base
package import Crypto
package import Scheduler
package import Storage
package import Telemetry

/// The dependencies of the public routes.
package struct RouteDependencies: Sendable {
    /// The time limit of the look-up of a token's owner at Google.
    package static let defaultGoogleDeadline: Duration = .seconds(10)

    package let store: any AccountStore
    package let engine: RefreshEngine
    package let google: any GoogleLookups
    package let vault: TokenVault
    package let signer: TokenSigner
    /// Returns the client ids that are configured at this moment; a reload may change them.
    private let currentClientIDs: @Sendable () -> [String]
    package let budgets: RequestBudgets
    /// The stored users that a Google account may be linked to by its e-mail address.
    package let emailLinking: EmailLinking
    package let sessionSettings: SessionSettings
    package let time: any TimeSource
    package let random: any RandomSource
    package let log: EngineLog
    package let diagnostics: DiagnosticLog
    package let googleDeadline: Duration

    package init(
        store: any AccountStore,
        engine: RefreshEngine,
        google: any GoogleLookups,
        vault: TokenVault,
        signer: TokenSigner,
        clientIDs: @escaping @Sendable () -> [String],
        budgets: RequestBudgets,
        emailLinking: EmailLinking = .verified,
        sessionSettings: SessionSettings = SessionSettings(),
        time: any TimeSource,
        random: any RandomSource,
        log: EngineLog,
        diagnostics: DiagnosticLog,
        googleDeadline: Duration = RouteDependencies.defaultGoogleDeadline
    ) {
        self.store = store
        self.engine = engine
        self.google = google
        self.vault = vault
        self.signer = signer
        currentClientIDs = clientIDs
        self.budgets = budgets
        self.emailLinking = emailLinking
        self.sessionSettings = sessionSettings
        self.time = time
        self.random = random
        self.log = log
        self.diagnostics = diagnostics
        self.googleDeadline = googleDeadline
    }

    /// The configured client ids: tokens that were issued to others are refused.
    package var clientIDs: [String] { currentClientIDs() }

    var authenticator: Authenticator { Authenticator(store: store, signer: signer, time: time) }

    var identityCheck: IdentityCheck {
        IdentityCheck(google: google, clientIDs: clientIDs, deadline: googleDeadline, time: time)
    }
}
