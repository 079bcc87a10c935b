package import Clocks
package import HTTPServer
package import Observability
package import RefreshEngine
package import Secrets
package import Store

/// What the public routes work with.
package struct AccountServices: Sendable {
    /// How long Google may take to say whose a token is.
    package static let usualGoogleDeadline: Duration = .seconds(10)

    /// The writes that one address may cause for each call to Google that it may cause.
    ///
    /// An app refreshes its tokens twice an hour for each sign-in, and many users may share one address.
    package static let writesPerGoogleCall = 10

    package let store: any AccountStore
    package let engine: RefreshEngine
    package let google: any GoogleLookups
    package let vault: TokenVault
    package let signer: TokenSigner
    /// The client ids that are ours: tokens of any other app are refused.
    package let clientIDs: [String]
    /// The limit per address on the routes that cost a call to Google.
    package let budget: AddressBudget
    /// The limit per address on the routes that end or rotate something stored, and cost a write.
    package let writeBudget: AddressBudget
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
        clientIDs: [String],
        budget: AddressBudget,
        writeBudget: AddressBudget,
        time: any TimeSource,
        random: any RandomSource,
        log: EngineLog,
        diagnostics: DiagnosticLog,
        googleDeadline: Duration = AccountServices.usualGoogleDeadline
    ) {
        self.store = store
        self.engine = engine
        self.google = google
        self.vault = vault
        self.signer = signer
        self.clientIDs = clientIDs
        self.budget = budget
        self.writeBudget = writeBudget
        self.time = time
        self.random = random
        self.log = log
        self.diagnostics = diagnostics
        self.googleDeadline = googleDeadline
    }

    var gatekeeper: Gatekeeper { Gatekeeper(store: store, signer: signer, time: time) }

    var identityCheck: IdentityCheck {
        IdentityCheck(google: google, clientIDs: clientIDs, deadline: googleDeadline)
    }

    /// Counts a request that will cost a call to Google; throws when its address has made too many.
    func spend(_ request: ServerRequest) throws(TooManyRequests) {
        if let wait = budget.take(address: request.clientAddress) { throw TooManyRequests(retryAfter: wait) }
    }

    /// Counts a request that may cost a write to the store; throws when its address has made too many.
    func spendWrite(_ request: ServerRequest) throws(TooManyRequests) {
        if let wait = writeBudget.take(address: request.clientAddress) { throw TooManyRequests(retryAfter: wait) }
    }
}
