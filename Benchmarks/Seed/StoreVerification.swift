import Crypto
import Foundation
import Storage

/// Compares every stored access token with the endpoint's log of issued ones.
struct StoreVerification {
    private static let pageSize = 2_000

    /// The result of the comparison.
    struct Outcome {
        var grants = 0
        var refreshed = 0
        var issued = 0
        /// The highest number of requests for one grant.
        var most = 0
        /// Grants whose stored token was issued for them, but is not the last one.
        var older = 0
        /// Grants whose stored token was never issued for them, with the names of at most ten.
        var wrong = 0
        var examples: [String] = []

        var json: String {
            """
            {"grants": \(grants), "refreshed": \(refreshed), "issued": \(issued), "most": \(most), \
            "older": \(older), "wrong": \(wrong)}
            """
        }
    }

    let store: any Store
    let vault: TokenVault
    let log: IssueLog

    func run() async throws -> Outcome {
        var outcome = Outcome(issued: log.lineCount, most: log.most)
        var cursor: GrantID?
        while true {
            let page = try await store.grants(after: cursor, in: nil, atMost: Self.pageSize)
            guard let last = page.last else { break }
            cursor = last.id
            for grant in page { try check(grant, &outcome) }
        }
        return outcome
    }

    private func check(_ grant: Grant, _ outcome: inout Outcome) throws {
        outcome.grants += 1
        guard let number = SampleGrant.number(ofUser: grant.userID) else {
            throw SeedError(message: "The user \(grant.userID) is not from a benchmark.")
        }
        let stored = try vault.openAccessToken(of: grant)
        if let last = log.last[number] {
            outcome.refreshed += 1
            if stored?.isEqual(to: SampleGrant.issuedAccessToken(last)) == true { return }
            let earlier = log.earlier[number, default: []]
            if earlier.contains(where: { stored?.isEqual(to: SampleGrant.issuedAccessToken($0)) == true }) {
                outcome.older += 1
                return
            }
        } else if stored?.isEqual(to: SampleGrant.firstAccessToken(number)) == true {
            return
        }
        outcome.wrong += 1
        if outcome.examples.count < 10 { outcome.examples.append(grant.userID) }
    }
}

/// The endpoint's log: time, number of the grant, id of the request.
struct IssueLog {
    private(set) var lineCount = 0
    private(set) var most = 0
    private(set) var last: [Int: String] = [:]
    /// The tokens issued before the last one, for grants with several requests.
    private(set) var earlier: [Int: [String]] = [:]

    init(path: String) throws {
        let text = try Data(contentsOf: URL(fileURLWithPath: path))
        for line in text.split(separator: UInt8(ascii: "\n")) {
            let words = line.split(separator: UInt8(ascii: " "))
            guard words.count == 3, let number = Int(String(decoding: words[1], as: UTF8.self)) else {
                throw SeedError(message: "\(path) has a line without a grant: \(String(decoding: line, as: UTF8.self))")
            }
            lineCount += 1
            if let former = last.updateValue(String(decoding: words[2], as: UTF8.self), forKey: number) {
                earlier[number, default: []].append(former)
            }
            most = max(most, 1 + earlier[number, default: []].count)
        }
    }
}

extension Secret {
    fileprivate func isEqual(to text: String) -> Bool {
        withBytes { span in span.withUnsafeBytes { $0.elementsEqual(text.utf8) } }
    }
}
