internal import Crypto

/// The known error codes of the token endpoint and their meaning.
///
/// Sources: https://developers.google.com/identity/protocols/oauth2/native-app, RFC 6749 section 5.2, and the codes
/// that Chromium's and Google's own libraries distinguish.
enum ErrorCode {
    /// Returns the verdict on the code of a 400, 401 or 403; `nil` for an undocumented code.
    static func verdict(on code: String, subtype: String?, sent: [Secret]) -> RefreshVerdict? {
        switch code {
        case "invalid_grant":
            // A Workspace session has ended; the refresh token is still alive
            // (https://support.google.com/a/answer/9368756).
            if let subtype, ["invalid_rapt", "rapt_required"].contains(subtype) {
                return .signInRequired(code: subtype)
            }
            return .invalidGrant
        case "invalid_dpop_proof", "use_dpop_nonce":
            return .signInRequired(code: code)
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
            return .clientOrForeignToken(code: code)
        case "rate_limit_exceeded":
            return .throttled(code: code)
        case "internal_failure", "server_error", "temporarily_unavailable":
            return .endpointFault(code: code)
        default:
            return nil
        }
    }

    /// Returns an unlisted code in a form that may be logged and stored as a grant's reason; `nil` if it is not a code,
    /// or repeats a secret that was sent.
    static func name(_ error: String, without sent: [Secret]) -> String? {
        error.isLowerCaseCode && !ErrorText.contains(error, sent) ? error : nil
    }

    /// Returns the code alone: old answers put a code and a text into one field, as in `internal_failure: Backend
    /// Error`.
    static func bare(_ error: String) -> String {
        error.hasPrefix("emm_") ? error : String(error.prefix(while: { $0 != ":" }))
    }
}
