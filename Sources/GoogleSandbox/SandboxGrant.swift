/// One user's consent in the sandbox.
struct SandboxGrant: Sendable {
    /// A fault that a test has prepared.
    struct Script: Equatable, Sendable {
        var fault: SandboxFault

        /// The number of requests that still get it, or `nil` for all.
        var times: Int64?
    }

    let sub: String
    let email: String
    let name: String
    let clientID: String
    let scope: String
    /// `true` if the owner has verified the e-mail address.
    let emailIsVerified: Bool
    /// The Workspace domain of the owner.
    let hostedDomain: String?

    var refreshTokens: RefreshTokenChain
    var isRevoked = false

    /// The lifetime of its access tokens in seconds, or `nil` for the lifetime in the settings.
    var lifetime: Int64?
    var script: Script?
    var latency: Duration?
    /// `true` if its token requests get no answer.
    var stalls = false
    var isOnHold = false

    /// The counts of token requests: received, answered with a token, and in progress.
    var requests = 0
    var successes = 0
    var inFlight = 0

    /// `true` if its scopes let a client see the e-mail address.
    var showsEmail: Bool {
        scope.split(separator: " ").contains { $0 == "email" || $0.hasSuffix("/auth/userinfo.email") }
    }

    /// Returns the fault prepared for this request, if there is one.
    mutating func takeScript() -> SandboxFault? {
        guard let prepared = script else { return nil }
        if let times = prepared.times {
            script = times > 1 ? Script(fault: prepared.fault, times: times - 1) : nil
        }
        return prepared.fault
    }
}
