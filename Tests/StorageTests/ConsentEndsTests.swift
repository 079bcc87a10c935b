import Base
import Foundation
import Testing

@testable import Storage

@Suite("What the ends of grants say about a project in testing", .timeLimit(.minutes(10)))
struct ConsentEndsTests {
    private static let day: Duration = .seconds(86_400)

    private func inTesting(_ days: [Double]) -> Int {
        var ends = ConsentEnds()
        ends.losses = days.map { Self.day * $0 }
        return ends.grantsInTesting
    }

    @Test("Three losses in a month at seven days, and half of all, show it; fewer do not")
    func rule() {
        #expect(inTesting([7, 7.05, 7.19]) == 3)
        #expect(inTesting([6.9, 7.2, 7, 1, 30, 200]) == 3)
        #expect(inTesting([6.9, 7.2, 7, 1, 30, 200, 3]) == 0)
        #expect(inTesting([7, 7]) == 0 && inTesting([6.89, 7.21, 7, 7]) == 0)
        var announced = ConsentEnds()
        announced.announced = 2
        #expect(announced.grantsInTesting == 2)
    }

    /// Ages at which users leave at random: a constant rate, or half of them within two weeks.
    enum Leaving: CaseIterable {
        case withinMonth, withinQuarter, early

        func age(_ random: some RandomSource) -> Double {
            let span = -log(1 - random.nextUnit())
            switch self {
            case .withinMonth: return 30 * span
            case .withinQuarter: return 90 * span
            case .early: return random.nextUnit() < 0.5 ? 14 * random.nextUnit() : 90 * span
            }
        }
    }

    /// Returns how many of `months` end with a project in testing, for users who come and leave at random.
    private func months(_ months: Int, usersPerMonth: Double, _ age: () -> Double, _ random: SeededRandom) -> Int {
        var losses: [(end: Double, age: Double)] = []
        var now = 0.0
        while now < 30 * Double(months) {
            now -= 30 / usersPerMonth * log(1 - random.nextUnit())
            let age = age()
            losses.append((now + age, age))
        }
        losses.sort { $0.end < $1.end }
        return (1...months).count { month in
            let end = 30 * Double(month)
            let first = losses.partitioningIndex { $0.end > end - 30 }
            let last = losses.partitioningIndex { $0.end > end }
            return inTesting(losses[first..<last].map(\.age)) > 0
        }
    }

    @Test(
        "Users who leave at random do not show it in 10,000 months, and those of a project in testing do in most",
        arguments: Leaving.allCases,
        [2.0, 10, 30, 100]
    )
    func model(leaving: Leaving, users: Double) {
        let random = SeededRandom(seed: 7)
        #expect(months(10_000, usersPerMonth: users, { leaving.age(random) }, random) == 0)
        guard users >= 30 else { return }
        // The refresh that finds the end comes within an hour.
        let seen = months(1000, usersPerMonth: users, { min(leaving.age(random), 7 + random.nextUnit() / 24) }, random)
        #expect(seen > 950)
    }

    @Test(
        "A store knows them by client id: what came with the consent, and the ages of the grants that Google ended",
        arguments: StoreKind.allCases
    )
    func stored(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let week = Self.day * 7
            let lifetimes: [Duration?] = [week, week - .seconds(60), week + .seconds(61), nil, nil]
            for (number, lifetime) in zip(Int64(1)..., lifetimes) {
                var incoming = IncomingTokens(clientID: number == 2 ? "b" : "a")
                let sealed = try Sample.sealed("refresh \(number)")
                incoming.refreshToken = Grant.RefreshToken(
                    sealed: sealed,
                    expiresAt: lifetime.map { start + $0 },
                    consentedAt: number == 5 ? nil : start
                )
                let (grant, events) = Grant.connected(
                    id: GrantID(rawValue: number),
                    userID: "user \(number)",
                    incoming: incoming,
                    dueAt: start,
                    at: start
                )
                try await store.transact { transaction in
                    try transaction.insert(grant)
                    for event in events { try transaction.record(event) }
                }
            }
            var expected = ["a": ConsentEnds(), "b": ConsentEnds()]
            expected["a"]?.announced = 1
            expected["b"]?.announced = 1
            #expect(try await store.grantStatistics(at: start + .seconds(5)).consentEnds == expected)

            let end = start + week
            for number in Int64(1)...5 {
                try await store.change(GrantID(rawValue: number)) {
                    $0.disconnect(reason: .invalidGrant, at: end + .seconds(number))
                }
            }
            // The end of grant 3 was part of a wave, and grant 2 ended twice with one consent.
            for number in Int64(2)...3 {
                try await store.change(GrantID(rawValue: number)) { $0.recall(confirmAt: end, at: end + .seconds(9)) }
            }
            try await store.change(GrantID(rawValue: 2)) {
                $0.disconnect(reason: .invalidGrant, at: end + .seconds(10))
            }
            // The user of grant 1 has consented again.
            try await store.change(GrantID(rawValue: 1)) { grant in
                grant.reconnect(
                    IncomingTokens(
                        clientID: "a",
                        refreshToken: Grant.RefreshToken(sealed: try! Sample.sealed("next"), consentedAt: end)
                    ),
                    replacesRefreshToken: true,
                    discardsStored: false,
                    dueAt: nil,
                    at: end + .seconds(20)
                )
            }
            let ended = try await store.grantStatistics(at: end + .seconds(30)).consentEnds
            #expect(ended["a"]?.losses == [week + .seconds(4), week + .seconds(1)])
            #expect(ended["b"]?.losses == [week + .seconds(10)])
            #expect(ended.values.allSatisfy { $0.announced == 0 })
            #expect(try await store.grantStatistics(at: end + Self.day * 31).consentEnds.isEmpty)
        }
    }

    @Test("A rotated refresh token belongs to the same consent, whose end is announced once")
    func rotation() throws {
        var grant = try Sample.grant(1)
        grant.refreshToken?.consentedAt = start
        grant.refreshToken?.isExpiryNoticed = true
        _ = grant.rotate(to: try Sample.refreshToken("next", expiresAt: start + Self.day), at: start + .seconds(60))
        #expect(grant.refreshToken?.consentedAt == start && grant.refreshToken?.isExpiryNoticed == true)
        #expect(grant.refreshToken?.expiresAt == start + Self.day)
    }

    @Test("The end of a refresh token that the app brings again does not move later")
    func broughtAgain() throws {
        var grant = try Sample.grant(1)
        for (brought, known) in [(7, 7), (9, 7), (6, 6)] {
            _ = grant.reconnect(
                IncomingTokens(
                    clientID: "client",
                    refreshToken: try Sample.refreshToken("refresh 1", expiresAt: start + Self.day * brought)
                ),
                replacesRefreshToken: false,
                discardsStored: false,
                dueAt: nil,
                at: start
            )
            #expect(grant.refreshToken?.expiresAt == start + Self.day * known)
        }
    }
}

extension Array {
    /// The position of the first element that fulfils the condition, as all after it do.
    fileprivate func partitioningIndex(_ condition: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if condition(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
