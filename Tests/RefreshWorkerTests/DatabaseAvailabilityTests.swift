import Storage
import Testing

@testable import RefreshWorker

@Suite("A loss of the database")
struct DatabaseAvailabilityTests {
    @Test("is reported once, again for another error, and once when it is over")
    func reported() {
        var availability = DatabaseAvailability()
        let codes: [StoreError.Code?] = [.unreachable, .unreachable, .refused, .refused, nil, nil]
        let isBackEarly = availability.succeeded()
        #expect(!isBackEarly, "a success ended a loss before any failure")
        let reported = codes.map { availability.failed(with: $0) }
        #expect(reported == [true, false, true, false, true, false])
        let isBack = (0..<2).map { _ in availability.succeeded() }
        #expect(isBack == [true, false])
    }
}
