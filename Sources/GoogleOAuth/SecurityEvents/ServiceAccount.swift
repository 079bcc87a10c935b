package import Base
package import Crypto

/// A service account of the Cloud project, from its key file
/// (https://developers.google.com/identity/protocols/risc#auth_token).
package struct ServiceAccount: Sendable {
    package let email: String
    private let keyID: String
    private let key: RSAPrivateKey

    /// Reads the JSON key file that the Cloud console offers once.
    package init(keyFile: Secret) throws(ServiceAccountError) {
        guard let file = JSONValue.object(in: Array(keyFile.reveal().utf8)) else { throw .notJSON }
        guard file["type"]?.string == "service_account" else { throw .otherType }
        guard let email = file["client_email"]?.string, !email.isEmpty else { throw .missing("client_email") }
        guard let keyID = file["private_key_id"]?.string, !keyID.isEmpty else { throw .missing("private_key_id") }
        guard let pem = file["private_key"]?.string else { throw .missing("private_key") }
        self.email = email
        self.keyID = keyID
        do throws(RSAKeyError) {
            key = try RSAPrivateKey(pem: Secret(pem))
        } catch {
            throw .key(error)
        }
    }

    /// Makes a token that a Google API accepts instead of an access token; it is valid for an hour.
    package func bearer(for audience: String, at now: Timestamp) throws(RSAKeyError) -> Secret {
        let issuedAt = now.milliseconds / 1000
        var claims = JSONLine()
        claims.field("iss", email)
        claims.field("sub", email)
        claims.field("aud", audience)
        claims.field("iat", issuedAt)
        claims.field("exp", issuedAt + 3600)
        return try SignedAssertion(claims, keyID: keyID, key: key).token
    }
}

/// The reason why a file is not a service account's key.
///
/// It never quotes the file.
package enum ServiceAccountError: Error, Hashable, Sendable, CustomStringConvertible {
    case notJSON
    case otherType
    case missing(String)
    case key(RSAKeyError)

    package var description: String {
        switch self {
        case .notJSON: "it is not a JSON object"
        case .otherType: "its type is not service_account"
        case .missing(let field): "it has no \(field)"
        case .key(let error): "its private_key: \(error)"
        }
    }
}
