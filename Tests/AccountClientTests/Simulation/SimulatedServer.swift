import Foundation

/// The backend of one session, with the rules of the store.
struct SimulatedServer {
    private(set) var family = SessionFamily(first: 1, at: 0)
    private var issued = 1
    private var accessEnds: [String: Int] = [:]

    /// Issues the access token that goes with the first refresh token.
    mutating func signIn(at now: Int) -> (access: String, refresh: String) { pair(1, at: now) }

    mutating func endSession() { family.end() }

    mutating func response(to request: SimulatedNetwork.Request, at now: Int) -> (status: Int, body: String) {
        guard request.path == "/api/auth/refresh" else {
            let isGood = !family.hasEnded && request.bearer.flatMap { accessEnds[$0] }.map { now < $0 } ?? false
            return isGood ? (200, "{}") : (401, #"{"detail":"Not authenticated"}"#)
        }
        let number = request.body.components(separatedBy: "refresh-").last.flatMap { Int($0.prefix { $0.isNumber }) }
        guard let present = family.present(number ?? 0, successor: issued + 1, at: now) else {
            return (401, #"{"detail":"Invalid refresh token"}"#)
        }
        issued = max(issued, present)
        let tokens = pair(present, at: now)
        return (200, #"{"access_token":"\#(tokens.access)","refresh_token":"\#(tokens.refresh)"}"#)
    }

    private mutating func pair(_ number: Int, at now: Int) -> (access: String, refresh: String) {
        let access = Backend.token("access-\(number)-\(now)", user: "ada", expiresIn: now + 1800)
        accessEnds[access] = now + 1800
        return (access, "refresh-\(number)")
    }
}
