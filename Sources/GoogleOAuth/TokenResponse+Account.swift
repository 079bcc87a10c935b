private import Base
private import Crypto

extension TokenResponse {
    /// The id of the Google account that the tokens belong to, from the ID token; `nil` if the answer has none that can
    /// be read.
    ///
    /// Its signature does not have to be checked, because it came directly from the token endpoint over TLS
    /// (https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation, 6).
    package var account: String? {
        guard let parts = idToken?.reveal().split(separator: ".", omittingEmptySubsequences: false), parts.count == 3,
            let payload = Base64URL.decode(String(parts[1])),
            let subject = JSONValue.object(in: payload)?["sub"]?.string,
            (1...255).contains(subject.utf8.count)
        else { return nil }
        return subject
    }
}
