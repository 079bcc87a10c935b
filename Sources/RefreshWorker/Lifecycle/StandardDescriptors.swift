private import Glibc

/// The three descriptors that every program expects to be open.
enum StandardDescriptors {
    /// Opens /dev/null on each of them that the program was started without.
    ///
    /// Else the next file or socket would get the number, and what is meant for standard error would be written into it.
    static func fill() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest free number is the one that is missing, as all below it are open.
            guard unsafe open("/dev/null", O_RDWR) == descriptor else { exit(ExitCode.internalFailure.rawValue) }
        }
    }
}
