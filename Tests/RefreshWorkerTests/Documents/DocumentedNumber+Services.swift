import TestSupport

@testable import Base
@testable import RefreshWorker
@testable import Routes
@testable import Scheduler

/// Tokens for services.
extension DocumentedNumber {
    static var services: [DocumentedNumber] {
        var numbers: [DocumentedNumber] = []
        numbers.add(
            "docs/services.md",
            """
            lives for `min_ttl` seconds (0 to \(TokenVendingRequest.maximumMinimumLife), default \
            \(TokenVendingRequest.defaultMinimumLife))
            """,
            "/token?min_ttl=\(TokenVendingRequest.defaultMinimumLife)&",
            "the worker refreshes the grant, at most once in \(VendDecision.minimumPause.spelled)",
            "the stored token if it lives for \(TokenEndpointRequest.minimumLife.spelled) or longer",
            "The next one waits for up to \(VendDecision.slowedPause.maximum.spelled)",
            "the worker tries for \(RefreshRules.maximumRevocation.spelled)"
        )
        return numbers
    }
}
