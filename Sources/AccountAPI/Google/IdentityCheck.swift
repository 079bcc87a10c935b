internal import GoogleOAuth
internal import Secrets

/// Why it is not known who stands behind an access token.
enum IdentityFailure: Error, Hashable, Sendable {
    /// The token is no good, is another app's, or its user's address is not verified: all answered alike.
    case refused
    /// Google could not be asked; trying again may help.
    case unavailable(code: String)
}

/// Asks Google both questions about an access token at once, under one deadline.
struct IdentityCheck: Sendable {
    let google: any GoogleLookups
    let clientIDs: [String]
    let deadline: Duration

    private enum Reply: Sendable {
        case user(UserInfo)
        case token(TokenInfo)
        case failure(LookupFailure)
    }

    func identity(behind accessToken: Secret) async throws(IdentityFailure) -> GoogleIdentity {
        let answers = await ask(accessToken)
        if answers.failures.contains(.refused) { throw .refused }
        guard let user = answers.user, let token = answers.token else {
            guard case .unavailable(let code) = answers.failures.first else { throw .unavailable(code: "timeout") }
            throw .unavailable(code: code)
        }
        guard let identity = GoogleIdentity(user, token, clientIDs: clientIDs) else { throw .refused }
        return identity
    }

    private struct Answers {
        var user: UserInfo?
        var token: TokenInfo?
        var failures: [LookupFailure] = []
    }

    private func ask(_ accessToken: Secret) async -> Answers {
        await withTaskGroup(of: Reply.self) { group in
            group.addTask {
                do throws(LookupFailure) {
                    return .user(try await google.userInfo(accessToken: accessToken))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do throws(LookupFailure) {
                    return .token(try await google.tokenInfo(accessToken: accessToken))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do {
                    try await Task.sleep(for: deadline)
                } catch {
                    // Both answers are there: nobody reads what this returns.
                }
                return .failure(.unavailable(code: "timeout"))
            }
            var answers = Answers()
            // One refusal, or one question without an answer, decides: what the other says does not matter any more.
            while answers.user == nil || answers.token == nil, answers.failures.isEmpty {
                switch await group.next() {
                case .user(let user): answers.user = user
                case .token(let token): answers.token = token
                case .failure(let failure): answers.failures.append(failure)
                case nil: return answers
                }
            }
            group.cancelAll()
            return answers
        }
    }
}
