import TestSupport

@testable import Base
@testable import Crypto
@testable import GoogleOAuth
@testable import RefreshWorker
@testable import Routes
@testable import Storage

/// The app's sessions, codes and security events.
extension DocumentedNumber {
    static var sessions: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/app.md",
            "(HS256, at least \(TokenSigner.minimumSecretLength) bytes)",
            "The **grace** is `--session-grace`, \(Session.defaultGrace.seconds) s",
            "a third of the grace: \(Session.defaultGrace.seconds / 3) s by default",
            "the rest of the session's \(SessionTokenPair.refreshLifetime.spelled)",
            "SHA-256 hashes of the tokens (\(TokenFamily.maximumMembers) at most)",
            "Repeated within \(CodeExchangeState.memory.spelled), it gets the first response again",
            "within the \(issueDelay) before the event, or later",
            "connects and revokes within \(issueDelay) might show"
        )
        numbers.add(
            "docs/guarantees.md",
            "stored in the \(issueDelay) before it was issued, or later",
            "Google issues the event more than \(issueDelay) late"
        )
        numbers.add(
            "docs/change.md",
            "3, \(SessionTokenPair.refreshLifetime.spelled) later",
            "\(SessionTokenPair.refreshLifetime.spelled) is how long a session's refresh token lives"
        )
        numbers.add("docs/mobile.md", "for \(CodeExchangeState.memory.spelled) it gets the first response")
        numbers.add(
            "docs/services.md",
            "they can live for \(SessionTokenPair.fullAccessLifetime.spelled) more"
        )
        numbers.add("docs/moving.md", "`SECRET_KEY` must have at least \(TokenSigner.minimumSecretLength) bytes")
        numbers.add(
            "docs/settings.md",
            "| `\(Session.defaultGrace.seconds)` | | Grace period in seconds (1 to \(Session.maximumGrace.seconds))",
            "(HS256), at least \(TokenSigner.minimumSecretLength) bytes"
        )
        return numbers
    }

    private static let issueDelay = SecurityEventToken.maximumDelayOfIssue.spelled
}
