internal import Base

/// The parts of a signed token in its compact form (RFC 7515, section 7.1).
///
/// None of them is verified yet.
struct CompactToken: Sendable {
    let header: JSONValue
    /// The bytes that the signature covers: the first two parts as they appear in the text.
    let signedBytes: [UInt8]
    let payload: [UInt8]
    let signature: [UInt8]

    /// Parses the text.
    ///
    /// `limit` is in bytes.
    init(_ text: String, limit: Int) throws(CryptoError) {
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

    /// Throws unless the token's algorithm is one of these.
    ///
    /// The verifier chooses the algorithm, never the token: this rejects `none`, and a public key used as a shared
    /// secret (RFC 8725, section 3.1). Critical extensions are not supported (RFC 7515, section 4.1.11).
    func require(algorithmIn algorithms: [String]) throws(CryptoError) {
        guard let algorithm = header["alg"]?.string, algorithms.contains(algorithm), header["crit"] == nil else {
            throw .unsupportedAlgorithm
        }
    }

    /// Returns the claims, for callers that have checked the signature or will check it.
    func claims() throws(CryptoError) -> JSONValue {
        guard let claims = JSONValue.object(in: payload) else { throw .malformed }
        return claims
    }

    /// Returns the encoded header and claims, joined by a dot, as they are signed.
    static func signedBytes(header: JSONLine, claims: JSONLine) -> [UInt8] {
        Base64URL.encoded(header.bytes) + [UInt8(ascii: ".")] + Base64URL.encoded(claims.bytes)
    }

    /// Returns the whole token.
    static func text(signedBytes: [UInt8], signature: [UInt8]) -> Secret {
        Secret(utf8: signedBytes + [UInt8(ascii: ".")] + Base64URL.encoded(signature))
    }
}
