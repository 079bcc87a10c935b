import Base
import Telemetry

/// The copies that a nightly backup leaves in its folder.
struct BackupSeries {
    let folder: String
    /// The end of each name.
    let ending: String
    /// The number of copies to keep.
    let keeps: Int

    private static let prefix = "refresh-worker-"
    /// A time in a name: each zero stands for a digit.
    private static let form = "00000000T000000Z"

    /// The name of a copy that was begun at an instant.
    ///
    /// Names sort by time.
    static func name(at now: Timestamp, ending: String) -> String { prefix + stamp(now) + ending }

    /// Frees space for the next copy: removes what killed backups have left, and surplus copies.
    func cleanUp(before now: Timestamp, diagnostics: DiagnosticLog) throws(SystemCallError) -> [String] {
        let leftovers = try BackupArchive.removeLeftovers(in: folder) { Self.isCopy($0, ending: ending) }
        // The next copy can fail, so all copies to keep stay until it is there.
        return leftovers + (try removeSuperfluous(keeping: keeps + 1, at: now, diagnostics: diagnostics))
    }

    /// Removes copies beyond those to keep, of which the one of `now` is the first.
    func cleanUp(after now: Timestamp, diagnostics: DiagnosticLog) throws(SystemCallError) -> [String] {
        try removeSuperfluous(keeping: keeps, at: now, diagnostics: diagnostics)
    }

    /// Removes what it can: one odd file must not keep the others, which would fill the disk.
    private func removeSuperfluous(
        keeping count: Int,
        at now: Timestamp,
        diagnostics: DiagnosticLog
    ) throws(SystemCallError) -> [String] {
        let names = try Folder.names(in: folder)
        var removed: [String] = []
        for name in Self.superfluous(among: names, keeping: count, ending: ending, at: now) {
            do throws(SystemCallError) {
                try SpillFile.remove("\(folder)/\(name)")
                removed.append(name)
            } catch {
                diagnostics.warning(
                    "an old backup cannot be removed: look at the file",
                    ["file": "\(folder)/\(name)", "error": "\(error)"]
                )
            }
        }
        return removed
    }

    /// `true` for the name of a complete copy.
    static func isCopy(_ name: String, ending: String) -> Bool { parts(of: name, ending: ending)?.rest.isEmpty == true }

    /// Returns the names to remove: complete copies beyond the latest ones, and what a killed backup without
    /// `--archive` has left, once it is a day old.
    ///
    /// The copy of `now` stays. Those of a later time are from a clock that was ahead, so they count as the oldest.
    static func superfluous(among names: [String], keeping count: Int, ending: String, at now: Timestamp) -> [String] {
        let own = names.sorted().compactMap { name in parts(of: name, ending: ending).map { (name: name, parts: $0) } }
        let copies = own.filter { $0.parts.rest.isEmpty }
        let older = copies.filter { $0.parts.stamp > stamp(now) } + copies.filter { $0.parts.stamp < stamp(now) }
        let former = stamp(now - .seconds(86_400))
        // Those of archives are locked while a process writes them, and are removed at once otherwise.
        let leftovers = own.filter { name, parts in
            parts.stamp < former && parts.rest.hasPrefix(".partial-")
                && !parts.rest.hasPrefix(BackupArchive.temporaryEnding)
        }
        return (older.dropLast(count - 1) + leftovers).map { $0.name }
    }

    /// Returns the time in a copy's name and what follows its ending, or `nil` if the name is of another file.
    private static func parts(of name: String, ending: String) -> (stamp: Substring, rest: Substring)? {
        let stamp = name.dropFirst(prefix.count).prefix(form.count)
        let beginning = "\(prefix)\(stamp)\(ending)"
        let isTime = zip(stamp, form).allSatisfy { $1 == "0" ? $0.isASCII && $0.isNumber : $0 == $1 }
        guard name.hasPrefix(beginning), stamp.count == form.count, isTime else { return nil }
        return (stamp, name.dropFirst(beginning.count))
    }

    static func stamp(_ time: Timestamp) -> Substring {
        Substring(time.iso8601Seconds.filter { $0 != "-" && $0 != ":" })
    }
}
