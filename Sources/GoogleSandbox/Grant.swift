/// One user's consent, as the sandbox knows it.
struct Grant: Sendable {
    /// An answer that a test has prepared.
    struct Script: Equatable, Sendable {
        var fault: Fault

        /// How many requests still get it; nil is all.
        var times: Int64?
    }

    let sub: String
    let email: String
    let name: String
    let clientID: String
    let scope: String
    /// Whether its owner has shown the e-mail address to be theirs.
    let emailIsVerified: Bool
    /// The Workspace domain of its owner.
    let hostedDomain: String?

    var refreshTokens: RefreshTokenChain
    var isRevoked = false

    /// Seconds that its access tokens live; nil takes what the settings say.
    var lifetime: Int64?
    var script: Script?
    var latency: Duration?
    var isHung = false
    var isOnHold = false

    /// How many token requests came, were answered with a token, and are being answered now.
    var requests = 0
    var successes = 0
    var inFlight = 0

    /// Whether its scopes let a client see the address.
    var showsEmail: Bool {
        scope.split(separator: " ").contains { $0 == "email" || $0.hasSuffix("/auth/userinfo.email") }
    }

    /// The fault prepared for this request, if any is left.
    mutating func takeScript() -> Fault? {
        guard let prepared = script else { return nil }
        if let times = prepared.times {
            script = times > 1 ? Script(fault: prepared.fault, times: times - 1) : nil
        }
        return prepared.fault
    }
}
