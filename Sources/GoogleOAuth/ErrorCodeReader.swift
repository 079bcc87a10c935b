import Base
import Crypto

/// The known error codes of the token endpoint and their meaning.
///
/// Sources: https://developers.google.com/identity/protocols/oauth2/native-app, RFC 6749 section 5.2, and the codes
/// that Chromium's and Google's own libraries distinguish.
enum ErrorCodeReader {
    /// Part of Google's sentence for an app without a valid proof of App Check.
    ///
    /// It was seen on the consent page (https://github.com/capawesome-team/capacitor-firebase/issues/943). What the
    /// token endpoint answers is not known.
    private static let authenticitySentence = "authenticity of this app"

    /// Returns the meaning of the code of a 400, 401 or 403, or `nil` for an undocumented code.
    static func failure(of code: String, subtype: String?, description: String?, sent: [Secret]) -> RefreshFailure? {
        switch code {
        case "invalid_grant":
            // A Workspace session has ended. The refresh token is still alive
            // (https://support.google.com/a/answer/9368756).
            if let subtype, ["invalid_rapt", "rapt_required"].contains(subtype) {
                return .signInRequired(code: subtype)
            }
            return .invalidGrant
        case "invalid_dpop_proof", ProofRefusal.nonceCode:
            // Of a bound token: the fault is the worker's clock, its nonce or its key. Of an unbound one: the app has
            // bound it to a key of its own.
            return .proofRefused(code: code)
        case _ where code.hasPrefix("emm_"):
            // The phone must prove that it is managed, which a server cannot do. The text after a colon is a link for
            // the phone.
            return .signInRequired(code: name(String(code.prefix(while: { $0 != ":" })), without: sent) ?? "emm_error")
        case "admin_policy_enforced", "policy_enforced", "org_internal", "access_not_configured", "access_denied",
            "invalid_account":
            return .blocked(code: code)
        case "invalid_client", "deleted_client", "disabled_client", "invalid_scope", "restricted_client",
            "unsupported_grant_type":
            return .clientFault(code: code)
        case "unauthorized_client", "invalid_request":
            if let description, description.contains(authenticitySentence) { return .appNotAuthentic }
            return .clientOrForeignToken(code: code)
        case "rate_limit_exceeded":
            return .throttled(code: code)
        case "internal_failure", "server_error", "temporarily_unavailable":
            return .endpointFault(code: code)
        default:
            return nil
        }
    }

    /// Returns an unlisted code in a form that can be logged and stored as a grant's reason, or `nil` if it is not a
    /// code, or repeats a secret that was sent.
    static func name(_ error: String, without sent: [Secret]) -> String? {
        guard error.isLowerCaseCode, !contains(error, partOfAny: sent) else { return nil }
        return error
    }

    /// Returns the code alone: old answers put a code and a text into one field, as in `internal_failure: Backend
    /// Error`.
    static func bare(_ error: String) -> String {
        error.hasPrefix("emm_") ? error : String(error.prefix(while: { $0 != ":" }))
    }
}

/// The text of an error, for logs.
extension ErrorCodeReader {
    static let maximumBytes = 256
    /// Words in a human language are shorter than this. Tokens are longer.
    static let maximumWord = 40

    /// Returns the `error` and `error_description` of the answer, shortened. Words that are long enough to be a token
    /// are replaced by their length. If the text repeats a secret that was sent, all of it is omitted.
    static func excerpt(of body: JSONValue?, without sent: [Secret]) -> String? {
        guard let error = body?["error"]?.string else { return nil }
        var text = error
        if let description = body?["error_description"]?.string { text += ": " + description }
        guard !contains(text, partOfAny: sent) else { return "(an answer that repeats a secret of the request)" }
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        let readable = words.map { $0.utf8.count > maximumWord ? "(\($0.utf8.count) bytes)" : $0 }.joined(
            separator: " "
        )
        return readable.capped(at: maximumBytes)
    }

    /// Returns `true` if the text contains any 16 characters of a secret, so that a part of it is also found.
    static func contains(_ text: String, partOfAny sent: [Secret]) -> Bool {
        sent.contains { contains(text, partOf: $0) }
    }

    private static func contains(_ text: String, partOf secret: Secret) -> Bool {
        let token = Array(secret.reveal().utf8)
        let width = min(16, token.count)
        guard width > 0 else { return false }
        let haystack = Array(text.utf8)
        guard haystack.count >= width else { return false }
        let pieces = Set((0...(token.count - width)).map { ArraySlice(token[$0..<$0 + width]) })
        return (0...(haystack.count - width)).contains { pieces.contains(haystack[$0..<$0 + width]) }
    }
}
