import TestSupport

@testable import Base
@testable import Crypto
@testable import RefreshWorker
@testable import Scheduler

/// Notices to the backend.
extension DocumentedNumber {
    static var notices: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/services.md",
            "until the backend answers 2xx, or for \(NoticeOutcome.givenUpAfter.spelled)",
            "the Base64 of at least \(CommandContext.minimumKeyLength) bytes",
            "any other text of at least \(TokenSigner.minimumSecretLength) bytes"
        )
        numbers.add("docs/guarantees.md", "the backend refuses it for \(NoticeOutcome.givenUpAfter.spelled)")
        numbers.add("docs/runbook.md", "The worker tries for \(NoticeOutcome.givenUpAfter.spelled)")
        numbers.add("docs/metrics-log.md", "or `given_up` after \(NoticeOutcome.givenUpAfter.spelled) of trying")
        numbers.add("docs/settings.md", "or a text of at least \(TokenSigner.minimumSecretLength) bytes")
        return numbers
    }
}
