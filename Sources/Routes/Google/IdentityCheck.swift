internal import Base
internal import Crypto
internal import GoogleOAuth

/// The reason why the owner of an access token is unknown.
enum IdentityFailure: Error, Hashable, Sendable {
    /// The token is invalid, belongs to another app, or its user's address is not verified; all get the same response.
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

    private enum LookupResult: Sendable {
        case user(UserInfo)
        case token(TokenInfo)
        case failure(AccountLookupFailure)
    }

    func identity(of accessToken: Secret) async throws(IdentityFailure) -> GoogleIdentity {
        let lookups = await lookUp(accessToken)
        if lookups.failures.contains(.refused) { throw .refused }
        guard let user = lookups.user, let token = lookups.token else {
            guard case .unavailable(let code) = lookups.failures.first else { throw .unavailable(code: "timeout") }
            throw .unavailable(code: code)
        }
        guard let identity = GoogleIdentity(user, token, clientIDs: clientIDs) else { throw .refused }
        return identity
    }

    private struct Lookups {
        var user: UserInfo?
        var token: TokenInfo?
        var failures: [AccountLookupFailure] = []
    }

    private func lookUp(_ accessToken: Secret) async -> Lookups {
        await withTaskGroup(of: LookupResult.self) { group in
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
            var lookups = Lookups()
            // One refusal, or one request without an answer, is enough to decide; the other is cancelled.
            while lookups.user == nil || lookups.token == nil, lookups.failures.isEmpty {
                switch await group.next() {
                case .user(let user): lookups.user = user
                case .token(let token): lookups.token = token
                case .failure(let failure): lookups.failures.append(failure)
                case nil: return lookups
                }
            }
            group.cancelAll()
            return lookups
        }
    }
}
