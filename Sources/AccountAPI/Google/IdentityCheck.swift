internal import Clocks
internal import GoogleOAuth
internal import Secrets

/// The reason why the owner of an access token is unknown.
enum IdentityFailure: Error, Hashable, Sendable {
    /// The token is invalid, belongs to another app, or its user's address is not verified; all get the same answer.
    case refused
    /// Google could not be reached; another try may help.
    case unavailable(code: String)
}

/// Sends both requests about an access token to Google at once, under one deadline.
struct IdentityCheck: Sendable {
    let google: any GoogleLookups
    let clientIDs: [String]
    let deadline: Duration
    let time: any TimeSource

    private enum Reply: Sendable {
        case user(UserInfo)
        case token(TokenInfo)
        case failure(AccountLookupFailure)
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
        var failures: [AccountLookupFailure] = []
    }

    private func ask(_ accessToken: Secret) async -> Answers {
        await withTaskGroup(of: Reply.self) { group in
            group.addTask {
                do throws(AccountLookupFailure) {
                    return .user(try await google.userInfo(accessToken: accessToken))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do throws(AccountLookupFailure) {
                    return .token(try await google.tokenInfo(accessToken: accessToken))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                do {
                    try await time.sleep(for: deadline)
                } catch {
                    // Both answers have arrived, so this result is not used.
                }
                return .failure(.unavailable(code: "timeout"))
            }
            var answers = Answers()
            // One refusal, or one request without an answer, decides; the other answer no longer matters.
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
