import Base

/// The position in the due index up to which the scan of a client does not read any more.
///
/// Each refresh leaves a dead entry in the index. While any transaction of the server keeps an old snapshot, VACUUM
/// cannot remove them, and a scan from the beginning steps over all of them: 14 s at 1.6 million. So once a scan was
/// slow, the following ones begin at the mark, and grants that are due before it are read by their ids.
///
/// Example: the mark is at 12:00:00, and grant 7, due at 11:59, waits for its breaker. The scan reads the row of grant
/// 7, and the index from 12:00:00 on. Then a grant is imported that was due at 11:30. The next full look finds it.
///
/// A worker that starts among millions of dead entries has no mark. Its first scan is given up after three seconds, and
/// begins at the present: a full look, which takes its time, finds what was due before.
struct DueMark {
    /// A scan that takes longer than this makes the following ones begin at a mark.
    static let slowScan: Duration = .milliseconds(50)
    /// The server ends a scan from the beginning of the index after this time, and a part of a full look.
    static let limit: Duration = .seconds(3)
    /// The distance of the mark from the present: longer than a transaction that stores a due time of its beginning.
    static let margin: Duration = .seconds(30)
    /// So many grants before the mark are remembered.
    static let capacity = 20_000
    /// A correction of the database's clock, and not a step back.
    static let tolerance: Duration = .seconds(2)
    static let firstPart: Duration = .seconds(60)
    static let minimumPart: Duration = .seconds(1)
    static let maximumPause: Duration = .seconds(60)
    /// Dead entries are not older than this, so the rest is one part.
    static let lastPart: Duration = .seconds(30 * 86_400)

    /// All grants that are due up to here are in `overdue`, except those that were stored since the last full look, and
    /// those that it left out.
    var position: Timestamp
    var overdue: Set<GrantID>
    /// The full look that is under way.
    var look: Task<Void, Never>?
    var nextLook: BootInstant
    /// `true` if the last full look found as many grants as can be remembered.
    var hasLeftGrantsOut = false
    /// The failure of the last full look.
    var failure: StoreError?

    /// The mark after a scan from the beginning of the index was given up.
    init(unreadUpTo position: Timestamp, at instant: BootInstant) {
        self.position = position
        overdue = []
        nextLook = instant
    }

    /// The mark after a scan that has read a page of at most `count` entries from the beginning of the index.
    init(after page: [DueEntry], ofAtMost count: Int, target: Timestamp, at instant: BootInstant) {
        let position = Self.position(after: page, ofAtMost: count, target: target)
        self.position = position
        overdue = Set(page.lazy.filter { $0.dueAt <= position }.map(\.id))
        nextLook = instant
    }

    /// Moves past the entries of a page after the mark.
    mutating func advance(past page: [DueEntry], ofAtMost count: Int, target: Timestamp) {
        let next = Self.position(after: page, ofAtMost: count, target: target)
        let passed = page.filter { $0.dueAt <= next }.map(\.id)
        guard next > position, overdue.count + passed.count <= Self.capacity else { return }
        overdue.formUnion(passed)
        position = next
    }

    /// A page that is full might lack entries of the same instant as its last one.
    private static func position(after page: [DueEntry], ofAtMost count: Int, target: Timestamp) -> Timestamp {
        guard page.count >= count, let last = page.last else { return target }
        return min(target, last.dueAt - .milliseconds(1))
    }

    /// `true` if it is time for a full look.
    ///
    /// One that left grants out is repeated once most of those that it found are refreshed.
    func isLookDue(at instant: BootInstant) -> Bool {
        guard look == nil else { return false }
        return instant >= nextLook || hasLeftGrantsOut && overdue.count < Self.capacity / 2
    }

    /// The pause after a full look, so that it costs the server a fifth of one core at most.
    static func pause(after duration: Duration) -> Duration { min(duration * 4, maximumPause) }
}
