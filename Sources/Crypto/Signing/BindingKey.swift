package import Base

/// A key of the ring that refresh tokens are bound to: it signs the proofs that their requests need (RFC 9449).
///
///     var claims = JSONLine()
///     claims.field("htm", "POST")
///     …
///     let header = key.proof(claims)    // the value of the header DPoP
package final class BindingKey: Sendable {
    package let id: KeyID
    package let publicPoint: P256PrivateKey.PublicPoint

    private let key: P256PrivateKey
    /// The encoded header and the dot after it: the same in each proof.
    private let encodedHeader: [UInt8]

    init(id: KeyID, scalar: Secret) throws(CryptoError) {
        self.id = id
        key = try P256PrivateKey(scalar: scalar)
        publicPoint = try key.publicPoint()
        encodedHeader = Base64URL.encoded(Self.header(with: publicPoint).bytes) + [UInt8(ascii: ".")]
    }

    /// The header of RFC 9449, section 4.2, with the members that Google names.
    private static func header(with point: P256PrivateKey.PublicPoint) -> JSONLine {
        var header = JSONLine()
        header.field("typ", "dpop+jwt")
        header.field("alg", PublicKey.Algorithm.es256.rawValue)
        header.object("jwk") { key in
            key.field("kty", "EC")
            key.field("crv", "P-256")
            key.field("x", Base64URL.encode(point.x))
            key.field("y", Base64URL.encode(point.y))
        }
        return header
    }

    /// Returns a proof with these claims.
    ///
    /// It is no secret: the endpoint accepts it once, and only for the request that the claims name.
    ///
    /// The call ends the process if memory is refused, as an allocation of Swift does.
    package func proof(_ claims: JSONLine) -> String {
        var proof = encodedHeader + Base64URL.encoded(claims.bytes)
        do throws(CryptoError) {
            let signature = try key.sign(proof)
            proof.append(UInt8(ascii: "."))
            proof += Base64URL.encoded(signature)
        } catch {
            OpenSSL.endProcess("a proof cannot be signed: \(error)")
        }
        return String(decoding: proof, as: UTF8.self)
    }
}
