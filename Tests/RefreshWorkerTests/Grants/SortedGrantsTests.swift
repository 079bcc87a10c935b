import Crypto
import Foundation
import Storage
import TestSupport
import Testing

@testable import Base
@testable import RefreshWorker

@Suite("The grants of a list")
struct SortedGrantsTests {
    private let now = ManualTime().now

    private func grant(_ number: Int64, user: String = "user", dueAt: Timestamp? = nil) -> Grant {
        Grant.connected(
            id: GrantID(rawValue: number),
            userID: user,
            incoming: IncomingTokens(
                clientID: number % 2 == 0 ? "even" : "odd",
                owner: Grant.Owner(),
                scope: nil,
                refreshToken: nil,
                accessToken: nil
            ),
            dueAt: dueAt,
            at: now
        ).grant
    }

    @Test("are sorted by due time, those without one last, however many there are")
    func due() {
        var sorted = SortedGrants(order: .due, limit: 3)
        for number in (1...5_000 as ClosedRange<Int64>).reversed() {
            sorted.add(grant(number, dueAt: number % 7 == 0 ? nil : now + .seconds(number)))
        }
        #expect(sorted.finish().map(\.rawValue) == [1, 2, 3])
        var few = SortedGrants(order: .due, limit: nil)
        few.add(grant(2))
        few.add(grant(1))
        few.add(grant(3, dueAt: now))
        #expect(few.finish().map(\.rawValue) == [3, 1, 2])
    }

    @Test("are sorted by the bytes of the user's id")
    func user() {
        var sorted = SortedGrants(order: .user, limit: nil)
        for (number, name) in ["é", "b", "B", "a"].enumerated() { sorted.add(grant(Int64(number), user: name)) }
        #expect(sorted.finish().map(\.rawValue) == [2, 3, 1, 0])
    }

    @Test("the filter for unreadable tokens selects the grants that the key ring does not open")
    func unreadable() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let lost = try fixture.grant(1, sealedBy: try fixture.openVault())
            try FileManager.default.removeItem(atPath: fixture.keyFile)
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let vault = try fixture.openVault()
            #expect(try !lost.opens(with: vault))
            #expect(try fixture.grant(2, sealedBy: vault).opens(with: vault))
        }
    }
}
