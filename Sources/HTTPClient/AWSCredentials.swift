package import Crypto

/// The access key that signs, with the session token if the key is temporary.
package struct AWSCredentials: Equatable, Sendable {
    package var keyID: Secret
    package var secretKey: Secret
    package var sessionToken: Secret?

    package init(keyID: Secret, secretKey: Secret, sessionToken: Secret? = nil) {
        self.keyID = keyID
        self.secretKey = secretKey
        self.sessionToken = sessionToken
    }

    /// `true` if each part is visible ASCII, as all of Amazon's are.
    package var isWellFormed: Bool {
        [keyID, secretKey, sessionToken].compactMap(\.self).allSatisfy { secret in
            !secret.isEmpty && secret.reveal().utf8.allSatisfy { (0x21...0x7e).contains($0) }
        }
    }
}
