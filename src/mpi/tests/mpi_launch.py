"""Starts programs on several ranks of this machine, with OpenMPI's or MPICH's mpiexec."""
import os
import subprocess


class Launcher:
    """Ranks share cores, run as any user, and talk through memory."""

    def __init__(self, mpiexec):
        version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=60).stdout
        self.is_open_mpi = "Open MPI" in version or "OpenRTE" in version
        self.name = "OpenMPI" if self.is_open_mpi else "MPICH"
        self.mpiexec = mpiexec
        self.survive = "--enable-recovery" if self.is_open_mpi else "-disable-auto-cleanup"
        self.environment = dict(os.environ, BNNS_VERBOSE="0", OMPI_ALLOW_RUN_AS_ROOT="1",
                                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                                OMPI_MCA_btl="vader,self", OMPI_MCA_plm="isolated",
                                OMPI_MCA_btl_vader_single_copy_mechanism="none",
                                OMPI_MCA_hwloc_base_binding_policy="none", HYDRA_LAUNCHER="fork",
                                # Without CMA: UCX ends a process that reads the memory of one that died.
                                UCX_TLS="posix,self")

    def run(self, ranks, program, timeout=60, threads=1, survive=False, **more):
        """Exit code and output; a run that does not end within the timeout is a hang, and raises. `survive`: a rank that dies
        does not end the others, and the exit code says nothing."""
        environment = dict(self.environment, BNNS_NUM_THREADS=str(threads), **more)
        command = [self.mpiexec, *([self.survive] if survive else []), "-n", str(ranks), *program]
        done = subprocess.run(command, env=environment, timeout=timeout, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
        return done.returncode, done.stdout

    def start(self, ranks, program, **more):
        """A run that goes on, in a process group of its own; a rank that dies does not end the others."""
        environment = dict(self.environment, BNNS_NUM_THREADS="1", **more)
        return subprocess.Popen([self.mpiexec, self.survive, "-n", str(ranks), *program], env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", start_new_session=True)
