"""Reader of the OpenPhenom embeddings of RxRx3-core."""

import os
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from skident.datasets._files import check_keys, existing, need, reading, wrong

_SOURCE = "https://huggingface.co/datasets/recursionpharma/rxrx3-core"
_EMBEDDINGS = "OpenPhenom_rxrx3_core_embeddings.parquet"
_METADATA = "metadata_rxrx3_core.csv"
_COLUMNS = (
    "well_id", "experiment_name", "plate", "address", "gene", "treatment",
    "perturbation_type",
)  # fmt: skip
_BLOCK = 16_384


def load_rxrx3_core(path, *, metadata=None, genes=None):
    """Read the OpenPhenom embeddings of RxRx3-core with the metadata of their wells.

    Parameters
    ----------
    path : str or path-like
        ``OpenPhenom_rxrx3_core_embeddings.parquet`` (532 MB), from
        https://huggingface.co/datasets/recursionpharma/rxrx3-core (Recursion
        non-commercial licence), or the folder that holds it.
    metadata : str or path-like, default=None
        ``metadata_rxrx3_core.csv``, of the same source; None looks beside the
        embeddings.
    genes : sequence of str, default=None
        Genes (or controls, such as "EMPTY_control") whose wells are kept; None keeps
        all.

    Returns
    -------
    Bunch
        ``data`` : ndarray of shape (n_wells, 384), float32. The parquet file is read in
        blocks, so that only wells that are kept take memory: 342 MB for all.
        ``target`` : ndarray of str of shape (n_wells,), the gene; "" for compounds.
        ``batches`` : ndarray of str of shape (n_wells,), the experiment.
        ``metadata`` : pandas.DataFrame of n_wells rows, all columns of the .csv.
        ``feature_names`` : list of str.
        ``DESCR`` : str.

        Wells are in the order of the parquet file; wells of the metadata without an
        embedding are left out.

    Raises
    ------
    FileNotFoundError
        If a file is missing, saying where it is to be had.
    ValueError
        If a file is not of this layout, an embedding has no metadata, or a gene has no
        well, saying what was expected and found.
    ImportError
        Without pyarrow or pandas (``pip install "skident[readers]"``).

    Notes
    -----
    Layout: the parquet file has a column ``well_id`` and one a feature, ``feature_0``
    to ``feature_383``; the .csv has ``well_id``, ``experiment_name``, ``plate``,
    ``address``, ``gene``, ``treatment``, ``SMILES``, ``concentration``,
    ``perturbation_type``, ``cell_type`` (data sheet of rxrx3-core in Recursion's
    rxrx-datasets; names of the features from its EFAAR_benchmarking).

    References
    ----------
    .. [1] Kraus et al., "RxRx3-core: benchmarking drug-target interactions in
       high-content microscopy", arXiv:2503.20158 (2025).

    Examples
    --------
    Files of the same layout:

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skident.datasets import load_rxrx3_core
    >>> folder = tempfile.TemporaryDirectory()
    >>> here = pathlib.Path(folder.name)
    >>> wells = pd.DataFrame({"well_id": ["gene-001_1_A01", "gene-002_1_A01"],
    ...     "experiment_name": ["gene-001", "gene-002"], "plate": 1, "address": "A01",
    ...     "gene": ["EIF3H", "EMPTY_control"], "treatment": "", "SMILES": "",
    ...     "concentration": np.nan, "perturbation_type": "CRISPR",
    ...     "cell_type": "HUVEC"})
    >>> wells.to_csv(here / "metadata_rxrx3_core.csv", index=False)
    >>> embeddings = pd.DataFrame(np.eye(2, dtype=np.float32)).add_prefix("feature_")
    >>> embeddings.insert(0, "well_id", wells["well_id"])
    >>> embeddings.to_parquet(here / "OpenPhenom_rxrx3_core_embeddings.parquet")
    >>> data = load_rxrx3_core(here, genes=["EIF3H"])
    >>> data.data, data.target.tolist(), data.batches.tolist()
    (array([[1., 0.]], dtype=float32), ['EIF3H'], ['gene-001'])
    >>> folder.cleanup()
    """
    expected = f"the embeddings ({_EMBEDDINGS}: well_id, feature_0, ...)"
    if isinstance(path, str | os.PathLike) and Path(path).expanduser().is_dir():
        path = Path(path) / _EMBEDDINGS
    path = existing(path, expected, _SOURCE)
    frame = _read_metadata(path.parent / _METADATA if metadata is None else metadata)
    if genes is not None:
        genes = [genes] if isinstance(genes, str) else list(genes)
        missing = [gene for gene in genes if not (frame["gene"] == gene).any()]
        if missing:
            raise ValueError(
                f"The metadata has no well of {', '.join(map(repr, missing[:5]))}, "
                "named in genes."
            )
    data, names, places = _read_embeddings(path, expected, frame, genes)
    frame = frame.iloc[places].reset_index(drop=True)
    return Bunch(
        data=data,
        target=frame["gene"].fillna("").to_numpy(dtype=str),
        batches=frame["experiment_name"].to_numpy(dtype=str),
        metadata=frame,
        feature_names=names,
        DESCR=f"RxRx3-core, OpenPhenom embeddings, {_SOURCE}",
    )


def _read_metadata(path):
    expected = f"the metadata ({_METADATA}: {', '.join(_COLUMNS)})"
    path = existing(path, expected, _SOURCE)
    pandas = need("pandas")
    # "NA" is no missing value here; empty is.
    with reading(path, expected, ValueError, OSError, UnicodeDecodeError):
        frame = pandas.read_csv(
            path, dtype={"gene": str}, keep_default_na=False, na_values=[""]
        )
    check_keys(path, expected, _COLUMNS, [str(name) for name in frame.columns])
    repeated = frame["well_id"][frame["well_id"].duplicated()]
    if len(repeated):
        raise wrong(path, expected, f"has well_id {repeated.iloc[0]!r} more than once")
    return frame


def _read_embeddings(path, expected, frame, genes):
    """Return the rows to keep, names of features, and places of rows in the frame."""
    pyarrow = need("pyarrow")
    parquet = need("pyarrow.parquet", "pyarrow")
    pandas = need("pandas")
    errors = OSError, pyarrow.ArrowException
    with reading(path, expected, *errors), parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        names = [name for name in schema.names if name.startswith("feature_")]
        check_keys(path, expected, ("well_id", "feature_0"), schema.names)
        for name in names:
            kind = schema.field(name).type
            if not pyarrow.types.is_floating(kind):
                raise wrong(path, expected, f"has {name!r} of type {kind}, no floats")
        wells = file.read(columns=["well_id"]).column("well_id").to_pandas()
        places = pandas.Index(frame["well_id"]).get_indexer(wells)
        if (places < 0).any():
            lost = wells[places < 0].iloc[0]
            raise wrong(path, expected, f"has well {lost!r}, which the metadata lacks")
        kept = np.ones(len(wells), dtype=bool)
        if genes is not None:
            kept = frame["gene"].isin(genes).to_numpy()[places]
        data = np.empty((int(kept.sum()), len(names)), dtype=np.float32)
        start = done = 0
        for batch in file.iter_batches(_BLOCK, columns=names):
            rows = kept[start : start + batch.num_rows]
            start += batch.num_rows
            if rows.any():
                block = data[done : done + int(rows.sum())]
                for j, column in enumerate(batch.select(names).columns):
                    block[:, j] = column.to_numpy(zero_copy_only=False)[rows]
                done += len(block)
    return data, names, places[kept]
