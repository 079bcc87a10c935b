import Crypto

/// What a request to the token endpoint proves: that its sender has the key of one refresh token.
struct ProofSubject: Sendable {
    /// Google keeps the nonces of the two apart: that of an exchange is refused for a refresh.
    enum Purpose: Hashable, Sendable {
        case exchange
        case refresh
    }

    let key: BindingKey
    let clientID: String
    let purpose: Purpose
    /// The id of each proof, or `nil` for a new random one.
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
    /// Google wants the hash of the code as the id of the proof, so that the proof is good for no other code
    /// (https://developers.google.com/identity/protocols/oauth2/resources/dpop-adoption).
    init(exchanging code: Secret, with key: BindingKey, clientID: String) {
        self.key = key
        self.clientID = clientID
        purpose = .exchange
        proofID = Base64URL.encode(code.withBytes { Digest.sha256($0) })
    }
}
