internal import Base

/// The nonces that proofs must contain (RFC 9449, section 8).
///
/// A nonce is good for one client and one kind of grant, as Google separates the exchange of codes from refreshes.
struct SandboxNonces: Sendable {
    struct Scope: Hashable, Sendable {
        let clientID: String
        let grantType: String
    }

    private struct Nonce {
        let text: String
        let scope: Scope
        let issuedAt: Timestamp
        let expiresAt: Timestamp
    }

    private var nonces: [Nonce] = []

    func isGood(_ text: String, for scope: Scope, at now: Timestamp) -> Bool {
        nonces.contains { $0.text == text && $0.scope == scope && $0.expiresAt > now }
    }

    /// Returns the nonce for the next proof: the last one in the first half of its life, or a new one.
    mutating func next(
        for scope: Scope,
        lifetime: Duration,
        at now: Timestamp,
        make: () -> String
    ) -> String {
        nonces.removeAll { $0.expiresAt <= now }
        if let last = nonces.last(where: { $0.scope == scope }), now - last.issuedAt < lifetime / 2 { return last.text }
        let text = make()
        nonces.append(Nonce(text: text, scope: scope, issuedAt: now, expiresAt: now + lifetime))
        return text
    }

    /// Lets all of them expire.
    mutating func expire() { nonces = [] }
}
