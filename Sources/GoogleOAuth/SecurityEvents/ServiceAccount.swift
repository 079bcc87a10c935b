package import Base
package import Crypto

/// A service account of the Cloud project, from its key file
/// (https://developers.google.com/identity/protocols/risc#auth_token).
package struct ServiceAccount: Sendable {
    let email: String
    private let keyID: String
    private let key: RSAPrivateKey

    /// Reads the JSON key file that the Cloud console offers once.
    package init(keyFile: Secret) throws(FormatError) {
        guard let file = JSONValue.object(in: Array(keyFile.reveal().utf8)) else {
            throw FormatError("it is not a JSON object")
        }
        guard file["type"]?.string == "service_account" else { throw FormatError("its type is not service_account") }
        func member(_ name: String) throws(FormatError) -> String {
            guard let value = file[name]?.string, !value.isEmpty else { throw FormatError("it has no \(name)") }
            return value
        }
        email = try member("client_email")
        keyID = try member("private_key_id")
        guard let pem = file["private_key"]?.string else { throw FormatError("it has no private_key") }
        do throws(CryptoError) {
            key = try RSAPrivateKey(pem: Secret(pem))
        } catch {
            throw FormatError("its private_key: \(error)")
        }
    }

    /// Makes a token that a Google API accepts instead of an access token. It is valid for an hour.
    func bearer(for audience: String, at now: Timestamp) throws(CryptoError) -> Secret {
        let issuedAt = now.milliseconds / 1000
        var claims = JSONLine()
        claims.field("iss", email)
        claims.field("sub", email)
        claims.field("aud", audience)
        claims.field("iat", issuedAt)
        claims.field("exp", issuedAt + 3600)
        return try key.signedToken(claims, keyID: keyID)
    }
}
