private import JSON
private import Secrets

extension TokenAnswer {
    /// The id of the Google account that the tokens belong to, as the ID token says; `nil` if there is none, or none that can
    /// be read.
    ///
    /// Its signature need not be checked, because it came from the token endpoint itself over TLS
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
