import Base
import Glibc
import Status

extension NightlyBackups {
    private static let timer = "/etc/systemd/system/timers.target.wants/refresh-worker-backup.timer"
    private static let dropIns = "/etc/systemd/system/refresh-worker-backup.service.d"
    private static let usualFolder = "/var/lib/refresh-worker/backups"

    /// Looks for the timer of this machine, and for the copies in the folder of its unit.
    ///
    /// Returns `nil` if the timer is off, or if its folder cannot be read. `root` is another machine's, in tests.
    static func find(root: String = "") -> NightlyBackups? {
        var link = stat()
        guard unsafe lstat(root + timer, &link) == 0 else { return nil }
        let folder = changedFolder(root: root) ?? usualFolder
        do throws(SystemCallError) {
            let names = try Folder.names(in: root + folder).filter { name in
                [".tar", ".sqlite"].contains { BackupSeries.isCopy(name, ending: $0) }
            }
            let times = try names.map { (name) throws(SystemCallError) in
                try FileStatus.of("\(root)\(folder)/\(name)")?.modifiedAt
            }
            return NightlyBackups(
                folder: folder,
                lastAt: times.compactMap(\.self).max(),
                isOnSince: Timestamp(secondsSince1970: Int64(link.st_mtim.tv_sec))
            )
        } catch {
            return nil
        }
    }

    /// The folder that a drop-in of the unit names: the last path of its command.
    ///
    /// What cannot be read counts as no drop-in.
    private static func changedFolder(root: String) -> String? {
        let names: [String]
        do throws(SystemCallError) {
            names = try Folder.names(in: root + dropIns)
        } catch {
            return nil
        }
        var lines: [Substring] = []
        for name in names where name.hasSuffix(".conf") {
            do throws(InputError) {
                let bytes = try FileReader.system.read("\(root)\(dropIns)/\(name)")
                lines += String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
            } catch {
                continue
            }
        }
        let commands = lines.filter { $0.hasPrefix("ExecStart=") && $0.contains("--keep") }
        return commands.last?.split(separator: " ").last { $0.hasPrefix("/") }.map(String.init)
    }
}
