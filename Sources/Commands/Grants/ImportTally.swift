package import Base

/// The results of an import so far.
package struct ImportTally: Equatable, Sendable {
    /// The limit of reasons that are counted separately.
    ///
    /// Others are counted together, so that memory stays bounded.
    private static let reasonLimit = 20

    package var stored = 0
    /// Users who were stored in part; the missing part was stored.
    var completed = 0
    package var replaced = 0
    /// Records that are stored with other content, which was kept.
    package var kept = 0
    /// Records that are stored exactly as in the input; only an import of users compares them.
    var unchanged = 0
    package var bad = 0
    private var reasons: [String: Int] = [:]
    private var otherReasons = 0

    package init(
        stored: Int = 0,
        completed: Int = 0,
        replaced: Int = 0,
        kept: Int = 0,
        unchanged: Int = 0,
        bad: Int = 0
    ) {
        self.stored = stored
        self.completed = completed
        self.replaced = replaced
        self.kept = kept
        self.unchanged = unchanged
        self.bad = bad
    }

    package var read: Int { stored + completed + replaced + kept + unchanged + bad }

    package mutating func countBad(_ reason: String) {
        bad += 1
        if reasons[reason] != nil || reasons.count < Self.reasonLimit {
            reasons[reason, default: 0] += 1
        } else {
            otherReasons += 1
        }
    }

    /// The numbers for programs.
    package var json: JSONLine {
        var line = JSONLine()
        line.field("read", read)
        line.field("stored", stored)
        line.field("completed", completed)
        line.field("replaced", replaced)
        line.field("kept", kept)
        line.field("unchanged", unchanged)
        line.field("bad", bad)
        return line
    }

    /// Returns a summary about grants in one line.
    func sentence(isDryRun: Bool) -> String {
        isDryRun
            ? """
            dry run, nothing was stored; \(read) read: \(stored) to store, \(replaced) to replace, \(kept) to keep, \
            \(bad) bad
            """
            : "\(read) read: \(stored) stored, \(replaced) replaced, \(kept) kept, \(bad) bad"
    }

    /// Returns a summary about users in one line.
    func userSentence(isDryRun: Bool) -> String {
        isDryRun
            ? """
            dry run, nothing was stored; \(read) read: \(stored) to store, \(completed) to complete, \(replaced) to \
            replace, \(kept) to keep, \(unchanged) unchanged, \(bad) bad
            """
            : """
            \(read) read: \(stored) stored, \(completed) completed, \(replaced) replaced, \(kept) kept, \
            \(unchanged) unchanged, \(bad) bad
            """
    }

    /// The reasons of bad records, if one of them is frequent: a line for each record was reported before.
    package var summaryOfReasons: [String] {
        otherReasons > 0 || reasons.values.contains { $0 > 1 } ? reasonLines : []
    }

    /// One line for each reason of bad records, the most frequent first.
    package var reasonLines: [String] {
        let lines = reasons.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "bad, \($0.value) of \(read): \($0.key)" }
        return otherReasons == 0 ? lines : lines + ["bad, \(otherReasons) of \(read): for other reasons, see above"]
    }
}
