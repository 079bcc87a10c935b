import Base
import Status

extension SpilledFile {
    /// Returns the spill files at a location and those that were set aside, in the order of their names.
    ///
    /// It locks none of them: a worker that is about to save results would take its own file for one in use.
    static func list(in location: SpillLocation) throws(SystemCallError) -> [SpilledFile] {
        let names = try Folder.names(in: location.folder).filter { location.isSpill($0) || location.isSetAside($0) }
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
            guard let bytes = try file?.read(limit: SpillFormat.maximumSize) else { return nil }
            let content = SpillFormat.read(bytes)
            return content.isDamaged && content.results.isEmpty ? nil : content.results.count
        } catch {
            return nil
        }
    }
}
