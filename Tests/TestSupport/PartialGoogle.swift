package import Crypto
package import GoogleOAuth

/// A fake Google that answers only what a test has prepared.
package protocol PartialGoogle: Google {}

extension PartialGoogle {
    package nonisolated func refresh(_ submissions: [RefreshSubmission]) -> [@Sendable () -> Void] {
        submissions.map { _ in {} }
    }

    package func exchange(
        _ code: Secret,
        client: OAuthClientCredentials,
        boundTo key: BindingKey?
    ) async -> CodeExchange {
        .unavailable("not_prepared")
    }

    package func revoke(
        _ token: Secret,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> RevocationResponse {
        .done
    }

    package func userInfo(accessToken: Secret) async throws(LookupError) -> UserInfo {
        throw .unavailable(code: "not_prepared")
    }

    package func tokenInfo(accessToken: Secret) async throws(LookupError) -> TokenInfo {
        throw .unavailable(code: "not_prepared")
    }
}
