internal import Base
internal import Crypto

/// A proof of a request, read and with a good signature, as RFC 9449, section 4.3, wants it.
struct SandboxProof: Sendable {
    /// The thumbprint of the public key (RFC 7638), to which a token is bound.
    let thumbprint: String
    let method: String?
    let url: String?
    let issuedAt: Int64?
    let id: String?
    let nonce: String?

    /// Returns `nil` for a text that is not a proof, or whose signature is wrong.
    init?(_ text: String) {
        guard let first = text.split(separator: ".", omittingEmptySubsequences: false).first,
            let headerBytes = Base64URL.decode(first), let header = OrderedJSON.parsed(headerBytes),
            header["typ"]?.stringValue == "dpop+jwt", header["alg"]?.stringValue == "ES256", let key = header["jwk"],
            key["kty"]?.stringValue == "EC", key["crv"]?.stringValue == "P-256", key["d"] == nil,
            let xText = key["x"]?.stringValue, let yText = key["y"]?.stringValue,
            let x = Base64URL.decode(xText), let y = Base64URL.decode(yText)
        else { return nil }
        let claims: JSONValue
        do {
            let token = try SignedToken(text)
            guard token.verifies(with: try PublicKey(x: x, y: y)) else { return nil }
            claims = token.claims
        } catch {
            return nil
        }
        thumbprint = Base64URL.encode(
            Digest.sha256(Array(#"{"crv":"P-256","kty":"EC","x":"\#(xText)","y":"\#(yText)"}"#.utf8))
        )
        method = claims["htm"]?.string
        url = claims["htu"]?.string
        issuedAt = claims["iat"]?.integer
        id = claims["jti"]?.string
        nonce = claims["nonce"]?.string
    }
}
