import Crypto

/// What the proofs of a refresh or an exchange have in common: the key, the client, and what the request is for.
struct ProofSubject: Sendable {
    /// Google keeps the nonces of the two apart: it refuses the nonce of an exchange in a refresh.
    enum Purpose: Hashable, Sendable {
        case exchange
        case refresh
    }

    let key: BindingKey
    let clientID: String
    let purpose: Purpose
    /// The id of every proof, or `nil` if each gets a new random one.
    let proofID: String?

    /// The proof for a refresh.
    init(refreshingWith key: BindingKey, clientID: String) {
        self.key = key
        self.clientID = clientID
        purpose = .refresh
        proofID = nil
    }

    /// The proof for the exchange of a code.
    ///
    /// Google wants the hash of the code as the proof's id. So the proof is good for no other code
    /// (https://developers.google.com/identity/protocols/oauth2/resources/dpop-adoption).
    init(exchanging code: Secret, with key: BindingKey, clientID: String) {
        self.key = key
        self.clientID = clientID
        purpose = .exchange
        proofID = Base64URL.encode(code.withBytes { Digest.sha256($0) })
    }
}
