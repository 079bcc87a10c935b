internal import Base
internal import Crypto
internal import GoogleOAuth

/// Google's two responses about one access token.
private struct TokenFacts: Sendable {
    let user: UserInfo
    let token: TokenInfo
}

private enum TokenFact: Sendable {
    case user(UserInfo)
    case token(TokenInfo)
}

/// Finds the owner of a Google token that the app presents.
///
///     let identity = try await GoogleTokenCheck(dependencies: dependencies).identity(of: accessToken)
///     identity.email  // "jane@gmail.com"
///
/// A token that was issued to another app is refused, and so is one whose e-mail address is not verified.
struct GoogleTokenCheck: Sendable {
    let dependencies: AppRoutes.Dependencies

    /// Returns the owner of an access token, by two requests to Google at once, under one deadline.
    func identity(of accessToken: Secret) async throws(AppError) -> GoogleIdentity {
        let facts: TokenFacts
        do throws(LookupError) {
            facts = try await lookUp(accessToken).get()
        } catch {
            switch error {
            case .refused: throw .refusedByGoogle
            case .unavailable: throw .googleUnreachable
            }
        }
        guard let identity = GoogleIdentity(facts.user, token: facts.token, clients: dependencies.acceptedClients)
        else {
            throw .refusedByGoogle
        }
        return identity
    }

    private func lookUp(_ accessToken: Secret) async -> Result<TokenFacts, LookupError> {
        await withTaskGroup(of: Result<TokenFact, LookupError>.self) { group in
            group.addTask {
                do throws(LookupError) {
                    return .success(.user(try await dependencies.google.userInfo(accessToken: accessToken)))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do throws(LookupError) {
                    return .success(.token(try await dependencies.google.tokenInfo(accessToken: accessToken)))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do {
                    try await dependencies.time.sleep(for: dependencies.googleDeadline)
                } catch {
                    // Both answers have arrived, so this result is not used.
                }
                return .failure(.unavailable(code: "timeout"))
            }
            // One refusal, or one request without an answer, is enough to decide. The other is cancelled.
            defer { group.cancelAll() }
            var user: UserInfo?
            var token: TokenInfo?
            for await result in group {
                switch result {
                case .success(.user(let info)): user = info
                case .success(.token(let info)): token = info
                case .failure(let error): return .failure(error)
                }
                if let user, let token { return .success(TokenFacts(user: user, token: token)) }
            }
            return .failure(.unavailable(code: "timeout"))
        }
    }
}
