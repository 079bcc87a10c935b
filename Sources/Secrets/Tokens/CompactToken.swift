import JSON

/// The parts of a signed token in its compact form, of which nothing is believed yet (RFC 7515, section 7.1).
struct CompactToken {
    let header: JSONValue
    /// What the signature is of: the first two parts as they stand in the text.
    let signedBytes: [UInt8]
    let payload: [UInt8]
    let signature: [UInt8]

    /// Takes the text apart; `limit` is in bytes.
    init(_ text: String, limit: Int) throws(TokenRefusal) {
        let bytes = Array(text.utf8)
        guard bytes.count <= limit else { throw .malformed }
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[2].isEmpty,
            let header = Base64URL.decode(utf8: parts[0]).flatMap(JSONValue.object(in:)),
            let payload = Base64URL.decode(utf8: parts[1]),
            let signature = Base64URL.decode(utf8: parts[2])
        else { throw .malformed }
        self.header = header
        self.payload = payload
        self.signature = signature
        signedBytes = Array(bytes[..<parts[1].endIndex])
    }

    /// Throws unless the token asks to be checked by this algorithm and nothing but it.
    ///
    /// The verifier names the algorithm, never the token: that is what keeps `none` and a public key used as a shared
    /// secret out (RFC 8725, section 3.1). An extension that must be understood is not (RFC 7515, section 4.1.11).
    func demand(algorithm: String) throws(TokenRefusal) {
        guard header["alg"] == .string(algorithm), header["crit"] == nil else { throw .unsupportedAlgorithm }
    }

    /// The claims; only for who has checked the signature, or will.
    func claims() throws(TokenRefusal) -> JSONValue {
        guard let claims = JSONValue.object(in: payload) else { throw .malformed }
        return claims
    }

    /// Header and claims as they are signed: encoded, with a dot between.
    static func signedBytes(header: JSONLine, claims: JSONLine) -> [UInt8] {
        Base64URL.encoded(header.bytes) + [UInt8(ascii: ".")] + Base64URL.encoded(claims.bytes)
    }

    /// The whole token.
    static func text(signedBytes: [UInt8], signature: [UInt8]) -> Secret {
        Secret(utf8: signedBytes + [UInt8(ascii: ".")] + Base64URL.encoded(signature))
    }
}
