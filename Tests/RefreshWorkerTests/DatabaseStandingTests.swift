import Store
import Testing

@testable import RefreshWorker

@Suite("A loss of the database")
struct DatabaseStandingTests {
    @Test("is told once, again when it is another, and once when it is over")
    func told() {
        var standing = DatabaseStanding()
        let codes: [StoreError.Code?] = [.unreachable, .unreachable, .refused, .refused, nil, nil]
        let early = standing.succeeded()
        #expect(!early, "nothing was lost yet")
        let told = codes.map { standing.failed(with: $0) }
        #expect(told == [true, false, true, false, true, false])
        let over = (0..<2).map { _ in standing.succeeded() }
        #expect(over == [true, false])
    }
}
