package import Crypto
package import GoogleOAuth

/// A fake token endpoint that answers each request from a function that may wait.
package protocol AnsweringEndpoint: PartialGoogle {
    func refresh(
        _ token: Secret,
        client: OAuthClientCredentials,
        mayStillSend: @escaping @Sendable () -> Bool
    ) async -> ParsedRefreshResponse
}

extension AnsweringEndpoint {
    package nonisolated func refresh(_ submissions: [RefreshSubmission]) -> [@Sendable () -> Void] {
        submissions.map { submission in
            let task = Task {
                let answer = await refresh(
                    submission.token,
                    client: submission.client,
                    mayStillSend: submission.mayStillSend
                )
                submission.receive(.read(answer))
            }
            return { task.cancel() }
        }
    }
}
