#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads the worker's responses to requests for tokens.
enum TokenResponse {
    /// The wait before the next try, if the response names none. The worker uses the same.
    static let defaultWait = 5.0
    /// A longer `Retry-After` is a mistake of something in between.
    static let maximumWait = 86_400.0
    /// The length of a text that an error repeats.
    private static let maximumText = 300

    private struct Vended: Decodable {
        enum CodingKeys: String, CodingKey {
            case accessToken = "access_token"
            case expiresIn = "expires_in"
            case expiresAt = "expires_at"
            case grantedScopes = "granted_scopes"
            case warning
        }

        let accessToken: String
        let expiresIn: Int
        let expiresAt: Date
        let grantedScopes: [String]
        let warning: String?
    }

    private struct Refusal: Decodable {
        let error: String
        let message: String?
        let reason: String?
        let missing: [String]?
    }

    /// Returns the token of a response, or the error that it means. `sentAt` is the time of the request, by the clock of
    /// this process.
    static func result(of response: WorkerTokens.Response, sentAt: Double) -> Result<WorkerTokens.Token, TokenError> {
        guard response.status == 200 else { return .failure(error(of: response)) }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        do {
            let vended = try decoder.decode(Vended.self, from: Data(response.body))
            guard !vended.accessToken.isEmpty, vended.expiresIn >= 0 else {
                return .failure(.unreadableResponse(status: 200))
            }
            return .success(
                WorkerTokens.Token(
                    value: vended.accessToken,
                    expiresAt: vended.expiresAt,
                    grantedScopes: vended.grantedScopes,
                    warning: vended.warning,
                    deadline: sentAt + Double(vended.expiresIn)
                )
            )
        } catch {
            return .failure(.unreadableResponse(status: 200))
        }
    }

    private static func error(of response: WorkerTokens.Response) -> TokenError {
        guard let refusal = refusal(in: response.body) else {
            // The page of a proxy. Only what might pass is worth another try.
            let status = response.status
            return status >= 500 ? tryAgain(response, reason: "http_\(status)") : .unreadableResponse(status: status)
        }
        // Nothing but the worker's own codes may say that the user must act.
        switch (response.status, refusal.error) {
        case (409, "reauth_required"), (409, "disconnected"): return .signInAgain(reason: refusal.reason)
        case (409, "suspended"): return .suspended(reason: refusal.reason)
        case (403, "missing_scopes"): return .missingScopes(refusal.missing ?? [])
        case (403, _): return .forbidden(message: text(of: refusal))
        case (404, "not_found"): return .unknownUser
        case (401, _): return .unknownCredential
        case (400, _), (404, _), (405, _), (413, _), (414, _), (431, _):
            return .invalidRequest(message: text(of: refusal))
        case (500, "token_unreadable"): return .unreadableToken
        case (408, _), (500..., _): return tryAgain(response, reason: refusal.reason ?? refusal.error)
        default: return .unreadableResponse(status: response.status)
        }
    }

    private static func refusal(in body: [UInt8]) -> Refusal? {
        do {
            return try JSONDecoder().decode(Refusal.self, from: Data(body))
        } catch {
            return nil
        }
    }

    private static func text(of refusal: Refusal) -> String {
        String((refusal.message ?? refusal.error).prefix(maximumText))
    }

    private static func tryAgain(_ response: WorkerTokens.Response, reason: String) -> TokenError {
        .tryAgain(after: wait(response.retryAfter), reason: String(reason.prefix(maximumText)))
    }

    /// Returns the seconds of a `Retry-After`. The worker never sends a date in it.
    private static func wait(_ retryAfter: String?) -> Double {
        guard let retryAfter, let seconds = Int(retryAfter), seconds > 0 else { return defaultWait }
        return min(Double(seconds), maximumWait)
    }
}
