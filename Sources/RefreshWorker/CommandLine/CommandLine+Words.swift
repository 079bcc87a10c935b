extension CommandLine {
    /// The arguments after the program's name.
    ///
    /// Swift's runtime looks for them next to the environment on the stack, and does not find them if a preloaded
    /// library moved the environment before the program began. The program would then run as the daemon instead of the
    /// command, so the kernel is asked (https://man7.org/linux/man-pages/man5/proc_pid_cmdline.5.html).
    static func words() throws -> [String] {
        guard arguments.isEmpty else { return Array(arguments.dropFirst()) }
        let words = try FileReader.system.read("/proc/self/cmdline").split(
            separator: 0,
            omittingEmptySubsequences: false
        )
        // Each word ends in a zero, so nothing follows the last one.
        return words.dropFirst().dropLast().map { String(decoding: $0, as: UTF8.self) }
    }
}
