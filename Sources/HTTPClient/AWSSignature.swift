package import Crypto

/// The parameters of Signature Version 4, with which libcurl signs a request to an AWS service.
///
/// The signature covers the body and all of the request's headers
/// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html).
package struct AWSSignature: Sendable {
    package var region: String
    /// The service's name in the scope of the signature, such as `secretsmanager`.
    package var service: String
    package var credentials: AWSCredentials

    package init(region: String, service: String, credentials: AWSCredentials) {
        self.region = region
        self.service = service
        self.credentials = credentials
    }

    /// `true` if libcurl can take each part as it is: a colon or a line break would begin another part.
    var isSendable: Bool {
        let names = [region, service]
        return names.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(Self.isNameByte) } && credentials.isWellFormed
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
        default: false
        }
    }
}

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
