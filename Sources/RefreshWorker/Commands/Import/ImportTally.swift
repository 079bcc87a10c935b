import Base

/// The results of an import so far.
struct ImportTally: Equatable, Sendable {
    /// The limit of reasons that are counted separately.
    ///
    /// Others are counted together, so that memory stays bounded.
    private static let maximumReasons = 20

    var stored = 0
    /// Users who were stored in part.
    ///
    /// The missing part was stored.
    var completed = 0
    var replaced = 0
    /// Records that are stored with other content, which was kept.
    var kept = 0
    /// Records that are stored exactly as in the input.
    ///
    /// Only an import of users compares them.
    var unchanged = 0
    /// Records of users who were deleted here, which are not stored again.
    var deletedHere = 0
    var bad = 0
    private(set) var reasons: [String: Int] = [:]
    private(set) var otherReasons = 0

    var read: Int { stored + completed + replaced + kept + unchanged + deletedHere + bad }

    mutating func countBad(_ reason: String) {
        bad += 1
        if reasons[reason] != nil || reasons.count < Self.maximumReasons {
            reasons[reason, default: 0] += 1
        } else {
            otherReasons += 1
        }
    }

    /// The numbers for people, without those that only an import of users has unless `comparing`.
    func counts(isDryRun: Bool, comparing: Bool = false) -> String {
        func count(_ number: Int, _ done: String, _ planned: String) -> String {
            "\(number) \(isDryRun ? planned : done)"
        }
        let completed = comparing ? [count(completed, "completed", "to complete")] : []
        let unchanged = comparing ? ["\(unchanged) unchanged"] : []
        let replaced = [count(replaced, "replaced", "to replace"), count(kept, "kept", "to keep")]
        let deletedHere = deletedHere > 0 ? ["\(deletedHere) of users deleted here"] : []
        return ([count(stored, "stored", "to store")] + completed + replaced + unchanged + deletedHere + ["\(bad) bad"])
            .joined(separator: ", ")
    }

    /// The numbers for programs.
    var json: JSONLine {
        var line = JSONLine()
        line.field("read", read)
        line.field("stored", stored)
        line.field("completed", completed)
        line.field("replaced", replaced)
        line.field("kept", kept)
        line.field("unchanged", unchanged)
        line.field("deleted_here", deletedHere)
        line.field("bad", bad)
        return line
    }

    /// The reasons of bad records, if one of them is frequent: a line for each record was reported before.
    var summaryOfReasons: [String] {
        otherReasons > 0 || reasons.values.contains { $0 > 1 } ? reasonLines : []
    }

    /// One line for each reason of bad records, the most frequent first.
    var reasonLines: [String] {
        let lines = reasons.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "bad, \($0.value) of \(read): \($0.key)" }
        return otherReasons == 0 ? lines : lines + ["bad, \(otherReasons) of \(read): for other reasons, see above"]
    }
}
