import Base
import Crypto
import Worker

/// A file of results that the database has not stored, as `status` and `doctor` list it.
struct SpilledFile: Equatable, Sendable {
    var path: String
    /// `true` if a recovery failed, so that only `results recover` reads the file again.
    var isSetAside: Bool
    var writtenAt: Timestamp
    /// The number of results in it; `nil` if they cannot be counted.
    var results: Int?

    /// Returns the spill files at a location and those that were set aside, in the order of their names.
    ///
    /// It locks none of them: a worker that is about to save results would take its own file for one in use.
    static func list(in location: SpillLocation) throws(SystemCallError) -> [SpilledFile] {
        let names = try SpillFile.names(in: location.folder).filter { location.isSpill($0) || location.isSetAside($0) }
        return names.compactMap { name in
            let path = "\(location.folder)/\(name)"
            // A missing file was recovered by another process.
            guard let writtenAt = writeTime(of: path) else { return nil }
            let (isSetAside, results) = (location.isSetAside(name), count(in: path))
            // Reserved disk space that is still empty.
            guard results != 0 || isSetAside else { return nil }
            return SpilledFile(path: path, isSetAside: isSetAside, writtenAt: writtenAt, results: results)
        }
    }

    /// Describes the file and the command that stores its results.
    func sentence(at now: Timestamp) -> String {
        let content = results.map { $0 == 1 ? "1 result" : "\($0) results" } ?? "results that cannot be counted"
        let age = (now - writtenAt).inTwoUnits
        let command = "refresh-worker results recover \(path.shellWord)"
        return isSetAside
            ? "\(content) in \(path) could not all be stored, \(age) ago: fix what the log says of the file, then run: \(command)"
            : "\(content) in \(path) wait to be stored since \(age): start the worker, or run: \(command)"
    }

    private static func writeTime(of path: String) -> Timestamp? {
        do throws(SystemCallError) {
            return try FileStatus.of(path)?.modifiedAt
        } catch {
            return nil
        }
    }

    private static func count(in path: String) -> Int? {
        do throws(SystemCallError) {
            let file = try SpillFile.openIfThere(path, forReading: true)
            guard let bytes = try file?.read(limit: SpillRecovery.sizeLimit) else { return nil }
            let content = SpillFormat.read(bytes)
            return content.isDamaged && content.results.isEmpty ? nil : content.results.count
        } catch {
            return nil
        }
    }
}
