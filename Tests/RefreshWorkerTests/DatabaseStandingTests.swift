import Store
import Testing

@testable import WorkerLifecycle

@Suite("A loss of the database")
struct DatabaseStandingTests {
    @Test("is reported once, again for another error, and once when it is over")
    func told() {
        var standing = DatabaseAvailability()
        let codes: [StoreError.Code?] = [.unreachable, .unreachable, .refused, .refused, nil, nil]
        let early = standing.succeeded()
        #expect(!early, "a success ended a loss before any failure")
        let told = codes.map { standing.failed(with: $0) }
        #expect(told == [true, false, true, false, true, false])
        let over = (0..<2).map { _ in standing.succeeded() }
        #expect(over == [true, false])
    }
}
